"""A wheel that has the library in it (tools/bundle) is for one platform, and for every Python: cffi loads it."""
import platform
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

has_library = any(Path(__file__).parent.glob("peridot/lib/libperidot.so*"))


class Binary(Distribution):
    def has_ext_modules(self):
        return has_library


class Wheel(bdist_wheel):
    def get_tag(self):
        if not has_library:
            return super().get_tag()
        libc = platform.libc_ver()[1].replace(".", "_")
        return "py3", "none", f"manylinux_{libc}_{platform.machine()}"


setup(distclass=Binary, cmdclass={"bdist_wheel": Wheel})
