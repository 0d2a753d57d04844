"""The client of toold, a local daemon that runs tool calls for programs that talk to language models.

>>> async with await toold.connect() as client:
...     async with await client.session(mode="acceptEdits") as session:
...         items = await session.run(message)  # what the model's API has answered

toold.sync has the same without asyncio.
"""

from ._client import FORMATS, MODEL_FORMATS, MODES, Client, connect
from ._errors import ModelError, TooldError
from ._given import Tool
from ._session import Session
from ._turn import Call, Turn
from ._version import __version__

__all__ = ["FORMATS", "MODEL_FORMATS", "MODES", "Call", "Client", "ModelError", "Session", "Tool", "TooldError", "Turn", "__version__", "connect"]
