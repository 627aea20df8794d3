"""What an image in a request must be: an http address or a data URL of one of four formats."""

import base64
import binascii
import re

from support.openai_api.errors import ApiError

FORMATS = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
DATA_URL = re.compile(r"data:(?P<type>[^;,]+);base64,(?P<data>.*)", re.DOTALL)


def check_image(url: str, param: str) -> None:
    """Refuse an image that is neither an address nor a data URL of a picture.

    The bytes are looked at as far as the format's signature.
    """
    if url.startswith(("http://", "https://")):
        return
    found = DATA_URL.fullmatch(url)
    if not found:
        raise ApiError(
            f"Invalid '{param}'. Expected a valid URL, but got a value with an invalid format.",
            param=param,
            code="invalid_value",
        )
    if found["type"] not in FORMATS:
        raise ApiError(
            "You uploaded an unsupported image. Please make sure your image has of one the following "
            "formats: ['png', 'jpeg', 'gif', 'webp'].",
            param=param,
            code="invalid_image_format",
        )
    try:
        data = base64.b64decode(found["data"], validate=True)
    except binascii.Error:
        data = b""
    if not data.startswith(tuple(FORMATS.values())):
        raise ApiError(
            "The image data you provided does not represent a valid image. Please check your input and try "
            "again with one of the following image formats: ['image/jpeg', 'image/png', 'image/gif', "
            "'image/webp'].",
            param=param,
            code="invalid_image_format",
        )


def check_file(file: dict[str, str], param: str) -> None:
    """Refuse a file that is not a PDF as a data URL, with a name."""
    found = DATA_URL.fullmatch(file["file_data"])
    if not found or found["type"] != "application/pdf" or not file.get("filename"):
        raise ApiError(
            f"Invalid file data: '{param}.file_data'. Expected a base64-encoded data URL with an "
            "application/pdf MIME type.",
            param=f"{param}.file_data",
            code="invalid_value",
        )
