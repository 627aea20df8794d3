"""Run by every Python kernel at its start: the formats E2B adds to what IPython displays.

It runs in the user's namespace, so it defines one function and removes it again.
"""


def _install() -> None:
    import sys
    from importlib.abc import MetaPathFinder
    from importlib.util import find_spec
    from typing import Any

    from IPython.core.display_functions import display as show
    from IPython.core.formatters import BaseFormatter, JSONFormatter
    from IPython.core.getipython import get_ipython
    from traitlets.traitlets import ObjectName, Unicode

    class DataFormatter(BaseFormatter):
        """A DataFrame as a dict of columns."""

        format_type = Unicode("e2b/data")
        print_method = ObjectName("_repr_e2b_data_")
        _return_type = (dict, str)

        def __call__(self, obj: Any) -> Any:
            # Only a program that has imported pandas can hold a DataFrame: nobody else pays for the import.
            pandas = sys.modules.get("pandas")
            if pandas is None or not isinstance(obj, pandas.DataFrame):
                return super().__call__(obj)
            return {
                key: [value.isoformat() if isinstance(value, pandas.Timestamp) else value for value in values]
                for key, values in obj.to_dict(orient="list").items()
            }

    class ChartFormatter(BaseFormatter):
        """A matplotlib figure as chart data, where e2b_charts is installed."""

        format_type = Unicode("e2b/chart")
        print_method = ObjectName("_repr_e2b_chart_")
        _return_type = (dict, str)

        def __call__(self, obj: Any) -> Any:
            pyplot = sys.modules.get("matplotlib.pyplot")
            if pyplot is None or not isinstance(obj, pyplot.Figure):
                return super().__call__(obj)
            try:
                from e2b_charts import chart_figure_to_dict
            except ImportError:
                return None
            try:
                return chart_figure_to_dict(obj)
            except Exception:
                # This runs while the figure is displayed: a picture without chart data beats no picture.
                return {}

    class ListFormatter(JSONFormatter):
        """Lists and dicts as JSON, numbers of numpy included, where orjson is installed."""

        def __call__(self, obj: Any) -> Any:
            if isinstance(obj, list | dict):
                try:
                    import orjson

                    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
                    return orjson.loads(orjson.dumps(obj, option=options)), {"expanded": True}
                except (ImportError, TypeError):
                    pass
            return super().__call__(obj)

    class ShowSavedImages(MetaPathFinder):
        """Have images displayed when they are saved to a named file, once a program imports Pillow."""

        def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
            if name != "PIL.Image":
                return None
            sys.meta_path.remove(self)
            spec = find_spec(name)
            loader: Any = spec.loader if spec is not None else None
            if loader is not None:
                load = loader.exec_module

                def load_and_wrap(module: Any) -> None:
                    load(module)
                    save = module.Image.save

                    def save_and_show(image: Any, fp: Any, format: str | None = None, **options: Any) -> None:
                        if isinstance(fp, str):
                            show(image)  # type: ignore[no-untyped-call,unused-ignore]
                        save(image, fp, format, **options)

                    module.Image.save = save_and_show

                loader.exec_module = load_and_wrap
            return spec

    shell: Any = get_ipython()  # type: ignore[no-untyped-call,unused-ignore]
    display = shell.display_formatter
    display.formatters["e2b/data"] = DataFormatter(parent=display)
    display.formatters["e2b/chart"] = ChartFormatter(parent=display)
    display.formatters["application/json"] = ListFormatter(parent=display)
    sys.meta_path.insert(0, ShowSavedImages())
    # The option of the same name does not reach the printer of tracebacks that exists already.
    shell.run_line_magic("colors", "nocolor")


_install()
del _install
