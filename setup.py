"""Names a wheel after what is in it; pyproject.toml says all else about the build.

The compiled kernel and the compiled reader of events are optional, each by itself. setuptools gives a wheel the name of
a compiled one as soon as an extension was asked for, even if none could be built: two wheels of one name, one of which
is a hundred times slower.
"""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext


class BuildExtensions(build_ext):
    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception:
            # One of an earlier build, of older sources, must not pass for this one.
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            raise


class BuildWheel(bdist_wheel):
    def run_command(self, command: str) -> None:
        super().run_command(command)
        if command == "build" and not self._is_compiled():
            self.distribution.ext_modules = []
            self.root_is_pure = True

    def _is_compiled(self) -> bool:
        return any(Path(name).exists() for name in self.get_finalized_command("build_ext").get_outputs())


setup(cmdclass={"build_ext": BuildExtensions, "bdist_wheel": BuildWheel})
