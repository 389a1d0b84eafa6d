"""`python setup.py bdist_wheel`; `pip install ./bindings/python` comes here, too. CMake's part is in pyproject.toml."""

from setuptools import setup

setup(packages=["cuvil", "cuvil.torch"], package_data={"cuvil": ["py.typed", "*.pyi"]})
