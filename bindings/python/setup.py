"""`python setup.py bdist_wheel`; `pip install ./bindings/python` comes here, too."""

from scikit_build_core.setuptools.wrapper import setup

setup(
    packages=["cuvil", "cuvil.torch"],
    package_data={"cuvil": ["py.typed", "*.pyi"]},
    cmake_source_dir="../..",
    cmake_args=["-DCUVIL_PYTHON=ON", "-DCUVIL_TESTS=OFF"],
)
