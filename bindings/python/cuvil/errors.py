"""Errors: all derive from CuvilError. A message says what happened, where (the user's file and line), what to do."""


class CuvilError(Exception):
    """Base of all errors of this package."""


class ModelError(CuvilError):
    """The model is malformed or damaged."""


class UnsupportedError(CuvilError, NotImplementedError):
    """The model or the request is fine, but Cuvil cannot do it; lists everything that is missing at once."""


class ShapeError(CuvilError, ValueError):
    """Inputs whose number, shapes or dtypes do not fit."""


class ArtifactError(CuvilError):
    """A .cvl file that is damaged, foreign, or cannot be loaded here."""


class TargetError(CuvilError):
    """The machine lacks what the code needs, or the target is unknown."""


class InternalError(CuvilError):
    """A bug of Cuvil; the message says how to report it."""
