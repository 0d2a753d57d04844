"""Errors, which carry the daemon's own codes (docs/errors.md)."""

from ._status_pb2 import ErrorInfo, Status


class TooldError(Exception):
    """What the daemon has refused, or that it cannot be reached.

    code is the name of the gRPC status, reason the daemon's code, empty for one of the connection, and metadata what it says beside.
    """

    def __init__(self, code, reason, message, metadata=None):
        super().__init__(message)
        self.code, self.reason, self.message, self.metadata = code, reason, message, dict(metadata or {})


class ModelError(TooldError):
    """A model's message that cannot be used: its API has reported an error (model_failed), or it cannot be read (invalid_model_event)."""

    def __init__(self, reason, message):
        super().__init__("ABORTED" if reason == "model_failed" else "INVALID_ARGUMENT", reason, message)


def error_of(e):
    """The error of a request."""
    error = TooldError(e.code().name, "", e.details() or "")
    for key, value in e.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in Status.FromString(value).details:
                if detail.type_url.endswith("/google.rpc.ErrorInfo"):
                    info = ErrorInfo.FromString(detail.value)
                    error.reason, error.metadata = info.reason, dict(info.metadata)
    return error
