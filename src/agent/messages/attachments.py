"""Pictures and files in messages: read in the forms that front ends and providers write, sent in one.

Known are langchain's blocks of both generations, those of OpenAI's two APIs, of Anthropic, of the AI SDK and
of MCP. All say the same in other words: a kind, a MIME type, a name, and base64, text, an address or an id.
"""

import base64
import binascii
import mimetypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from langchain_core.language_models import BaseChatModel

from agent.artifacts.media import medium, size_of_image
from agent.messages.texts import well_formed
from agent.tools.budget import clipped

Api = Literal["responses", "chat", "anthropic", "other"]
Images = Literal["auto", "on", "off"]

KINDS = {
    "image": "image", "image_url": "image", "input_image": "image",
    "file": "file", "input_file": "file", "document": "file", "media": "file", "text-plain": "file",
    "resource": "file", "resource_link": "file", "container_upload": "file",
    "audio": "audio", "input_audio": "audio",
    "video": "video", "video_url": "video", "input_video": "video",
}  # fmt: skip
"""Types of blocks that carry something, and what."""

MAX_IMAGE_BYTES = 3_700_000
"""Of one image: in base64 that stays below the 5 MB that the strictest of the large providers takes."""
MAX_PIXELS = 8_000
"""Of one side of an image, as the strictest of the large providers takes it."""
MAX_FILE_BYTES = 10_000_000
MAX_TEXT_BYTES = 100_000
"""Of a text file that stands in the message itself."""
MAX_NAME_CHARS = 100

_INNER = ("source", "file", "image_url", "image", "input_audio", "audio", "video_url", "video", "resource",
          "metadata", "extras")  # fmt: skip
_SIGNATURES = {
    b"\x89PNG\r\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}
_TEXTUAL = re.compile(
    r"text/.*|application/(json|xml|yaml|x-yaml|toml|javascript|x-sh|x-ndjson|sql)|.*\+(json|xml)"
)
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Takes:
    """What a model can be sent, and by which API."""

    api: Api
    images: bool = False
    pdfs: bool = False
    audio: bool = False

    @classmethod
    def of(cls, model: BaseChatModel, images: Images = "auto") -> "Takes":
        """Return what langchain knows of a model; of one that it does not know, that it takes text.

        Args:
            model: of the call.
            images: `on` and `off` say it in langchain's place.
        """
        profile = getattr(model, "profile", None) or {}
        sees = bool(profile.get("image_inputs")) if images == "auto" else images == "on"
        return cls(
            api_of(model), sees, bool(profile.get("pdf_inputs")), audio=bool(profile.get("audio_inputs"))
        )

    @property
    def file_addresses(self) -> bool:
        """Whether a file may be named by its address."""
        return self.api in {"responses", "anthropic"}


def api_of(model: Any) -> Api:
    """Return by which API a model is asked."""
    # By name: which packages are installed is the deployment's affair, and importing them costs.
    names = {kind.__name__ for kind in type(model).__mro__}
    if "BaseChatOpenAI" in names:
        chosen = model.use_responses_api
        return "responses" if (model._use_responses_api({}) if chosen is None else chosen) else "chat"
    return "anthropic" if "ChatAnthropic" in names else "other"


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a block carries: one of `data`, `text`, `url` and `file_id`, or nothing that can be used."""

    kind: str
    mime: str = ""
    name: str = ""
    data: bytes = b""
    text: str = ""
    url: str = ""
    file_id: str = ""

    @property
    def words(self) -> str:
        """What it is."""
        size = f"{len(self.data):,} bytes" if self.data else ""
        about = ", ".join(part for part in (self.mime, size) if part)
        named = f"{self.kind} {self.name!r}" if self.name else self.kind
        return f"{named} ({about})" if about else named


def attachment(block: Mapping[str, Any]) -> Attachment | None:
    """Return what a block carries; None for one of another kind."""
    kind = KINDS.get(block["type"]) if isinstance(block.get("type"), str) else None
    if kind is None:
        return None
    inner = [block[key] for key in _INNER if isinstance(block.get(key), Mapping)]
    parts = [block, *inner]
    mime = _first(parts, "mime_type", "mimeType", "media_type", "mediaType")
    name = " ".join(well_formed(_first(parts, "filename", "fileName", "file_name", "name", "title")).split())
    if not mime and kind == "audio" and (form := _first(parts, "format")):
        mime = f"audio/{form}"
    known: dict[str, Any] = {"name": name[:MAX_NAME_CHARS], "mime": mime.lower()}
    if _is_text(parts, block) and (text := _first(parts, "text", "data", "url")):
        return Attachment(kind, **{**known, "mime": known["mime"] or "text/plain"}, text=text)
    where = _first(parts, "url", "uri", "image_url", "file_url", "video_url")
    given = _first(parts, "base64", "data", "blob", "bytes", "file_data", "image") or where
    if given.startswith(("http://", "https://")):
        return Attachment("image" if known["mime"].startswith("image/") else kind, **known, url=given)
    if given and (given != where or _DATA_URL.match(given)):
        return _of_data(kind, known, given)
    if where:
        return Attachment(kind, **known)  # an address of the front end's own, such as `blob:`
    named = _first(parts, "file_id") or (_first(parts, "id") if block.get("source_type") == "id" else "")
    if not named and (text := _first(inner, "text")):
        return Attachment(kind, **known, text=text)
    return Attachment(kind, **known, file_id=named)


def _is_text(parts: Sequence[Mapping[str, Any]], block: Mapping[str, Any]) -> bool:
    if block["type"] == "text-plain" or block.get("source_type") == "text":
        return True
    source = block.get("source")
    return isinstance(source, Mapping) and source.get("type") == "text"


def _first(parts: Sequence[Mapping[str, Any]], *keys: str) -> str:
    for key in keys:
        for part in parts:
            if isinstance(found := part.get(key), str) and found:
                return found
    return ""


def _of_data(kind: str, known: dict[str, str], given: str) -> Attachment:
    mime, coded, data = known["mime"], given, b""
    if found := _DATA_URL.match(given):
        mime, coded = found[1].lower() or mime, given[found.end() :]
        if "base64" not in found[2].lower():
            data = unquote_to_bytes(coded)
    data = data or _decoded(coded)
    # The bytes decide: a provider looks at them, too, and refuses what was called by another name.
    mime = _sniffed(data) or mime or mimetypes.guess_type(known["name"])[0] or ""
    if mime.startswith("image/"):
        kind = "image"
    return Attachment(kind, mime, known["name"], data=data)


def _decoded(coded: str) -> bytes:
    """Return what base64 of either alphabet stands for, with or without its end; nothing if it is none."""
    try:
        plain = re.sub(r"\s+", "", coded).translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
        return binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
    except ValueError:
        return b""


def _sniffed(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for head, mime in _SIGNATURES.items() if data.startswith(head)), "")


def block_of(found: Attachment, takes: Takes) -> dict[str, Any] | str:
    """Return the block that a model is sent: langchain's own form, which each provider's package turns on.

    Returns:
        A block, or why the model cannot be sent what the block carries.
    """
    if found.text:
        return _inline(found, found.text)
    if found.data and _TEXTUAL.fullmatch(found.mime) and (text := _as_text(found.data)):
        return _inline(found, text)
    if found.kind == "image":
        return _image(found, takes)
    if found.file_id:
        if takes.api in {"responses", "chat"} and found.kind == "file":
            return {"type": "file", "file_id": found.file_id}
        return "it is named by an id of another service"
    if found.kind == "audio":
        return _audio(found, takes)
    if found.kind == "video":
        return "this model takes no videos"
    return _file(found, takes)


def _image(found: Attachment, takes: Takes) -> dict[str, Any] | str:
    if not takes.images:
        return "this model takes no images"
    if found.url:
        return {"type": "image", "url": found.url}
    if not found.data:
        return "it holds no data that can be read"
    if not medium(found.mime).seen:
        return f"models take images in PNG, JPEG, GIF and WebP, and not {found.mime or 'of an unknown kind'}"
    if len(found.data) > MAX_IMAGE_BYTES:
        return f"models take images of up to {MAX_IMAGE_BYTES:,} bytes"
    size = size_of_image(found.data)
    if size is None or min(size) < 1:
        return "it is no whole image"
    if max(size) > MAX_PIXELS:
        return f"models take images of up to {MAX_PIXELS:,} pixels a side"
    return {"type": "image", "base64": base64.b64encode(found.data).decode(), "mime_type": found.mime}


def _audio(found: Attachment, takes: Takes) -> dict[str, Any] | str:
    form = found.mime.removeprefix("audio/").replace("mpeg", "mp3").replace("x-wav", "wav")
    if not takes.audio or takes.api != "chat" or form not in {"wav", "mp3"} or not found.data:
        return "this model takes no such audio"
    return {"type": "audio", "base64": base64.b64encode(found.data).decode(), "mime_type": f"audio/{form}"}


def _file(found: Attachment, takes: Takes) -> dict[str, Any] | str:
    if found.url:
        pdf = not found.mime or found.mime == "application/pdf"
        if takes.pdfs and takes.file_addresses and pdf:
            return {"type": "file", "url": found.url}
        return f"this model is not given files by their address: {found.url[:200]}"
    if not found.data:
        return "it holds no data that can be read"
    if found.mime != "application/pdf":
        return f"models take no files of the type {found.mime or 'unknown'} in a message"
    if not takes.pdfs:
        return "this model takes no PDF files"
    if not found.data.startswith(b"%PDF-"):
        return "it is no PDF file"
    if len(found.data) > MAX_FILE_BYTES:
        return f"files of up to {MAX_FILE_BYTES:,} bytes are sent to models"
    coded = base64.b64encode(found.data).decode()
    name = found.name or "document.pdf"
    return {"type": "file", "base64": coded, "mime_type": found.mime, "filename": name}


def _as_text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""


def _inline(found: Attachment, text: str) -> dict[str, Any]:
    head = f"The file {found.name!r}:" if found.name else "A file:"
    return {"type": "text", "text": f"{head}\n{clipped(well_formed(text), MAX_TEXT_BYTES)}"}
