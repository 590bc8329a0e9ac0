"""`sensorsim export`."""

from pathlib import Path

import click

from sensorsim.cli.output import emit, format_option


@click.command()
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder to write; new, empty, or an earlier package."
)
@click.option(
    "--kernels",
    default="spof,dpsgd,release,sampled",
    show_default=True,
    help="Kernels, by name, with commas; FILE.py:name for your own.",
)
@click.option(
    "--variant",
    type=click.Choice(["paper", "lean"]),
    default="lean",
    show_default=True,
    help="paper: as printed; lean: what a firmware engineer would ship.",
)
@click.option("--noise", type=click.Path(path_type=Path), help="A noise table, as `sensorsim noise make` writes it.")
@click.option("--encoder", type=click.Path(path_type=Path), help="A trained encoder; goes with the kernel `encoder`.")
@click.option("--prefix", default="ss_", show_default=True, help="What every C name begins with.")
@click.option("--spdx", default="MIT", show_default=True, help="Licence identifier for the head of every file.")
@click.option("--allow-uncertified", is_flag=True, help="Take a noise table that protects nothing; every file says so.")
@format_option
def command(
    out: Path,
    kernels: str,
    variant: str,
    noise: Path | None,
    encoder: Path | None,
    prefix: str,
    spdx: str,
    allow_uncertified: bool,
    fmt: str,
) -> None:
    """Write the kernels as a C package for firmware.

    Freestanding C99 in integers only, with tables, golden vectors, a self-test, build files, a MISRA report and a
    manifest. The same input gives the same bytes.

    Example: sensorsim export --out firmware/privacy --kernels release --noise table.txt
    """
    from sensorsim.cli.names import kernel_name
    from sensorsim.export.choose import Options
    from sensorsim.export.package import make_package
    from sensorsim.export.write import write_folder

    names = tuple(kernel_name(name.strip()) for name in kernels.split(",") if name.strip())
    texts = make_package(Options(names, variant, noise, encoder, prefix, spdx, allow_uncertified))
    write_folder(out, texts)
    rows = [{"file": path, "bytes": len(text.encode())} for path, text in texts.items()]

    def table() -> str:
        width = max(len(str(row["file"])) for row in rows)
        lines = [f"  {row['file']:<{width}}  {row['bytes']:>7} bytes" for row in rows]
        return "\n".join([f"{out}: {len(rows)} files", *lines, f"Next: sensorsim verify {out}"])

    emit(fmt, table, lambda: {"schema_version": 1, "folder": str(out), "files": rows}, lambda: rows)
