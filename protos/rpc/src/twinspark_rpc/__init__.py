"""The hand-written half of RPC, shared by every service. It knows no domain noun.

A service uses it like this (its `__main__.py` and `app.py`):

    settings = load_settings(Settings)                        # settings.py: checks variables, answers --print-settings
    configure_logging("vision", settings.log_level)           # logs.py: JSON lines
    server = RpcServer("vision", settings, registry)          # server.py
    server.add(add_VisionServiceServicer_to_server, servicer, "twinspark.vision.v1.VisionService")
    await server.start()                                      # listens; health says NOT_SERVING
    await server.set_serving(True)
    await server.run_until_signal(drain=servicer.drain)       # SIGTERM: health flips, drain, stop

Handlers raise `ServiceError` subclasses (errors.py); an interceptor turns them into statuses with `ErrorInfo`, and
callers read these with `read_status` (statuses.py). Callers open channels with `open_channel` (channel.py).

Entry rule: three services use it, it contains no domain noun, and its file is named after what it does.
"""

from twinspark_rpc.channel import MethodPolicy as MethodPolicy
from twinspark_rpc.channel import open_channel as open_channel
from twinspark_rpc.errors import ServiceError as ServiceError
from twinspark_rpc.logs import configure_logging as configure_logging
from twinspark_rpc.request_id import REQUEST_ID_KEY as REQUEST_ID_KEY
from twinspark_rpc.request_id import request_metadata as request_metadata
from twinspark_rpc.server import AddressTakenError as AddressTakenError
from twinspark_rpc.server import RpcServer as RpcServer
from twinspark_rpc.settings import ChannelSettings as ChannelSettings
from twinspark_rpc.settings import ListenSettings as ListenSettings
from twinspark_rpc.settings import ServiceSettings as ServiceSettings
from twinspark_rpc.settings import SettingsError as SettingsError
from twinspark_rpc.settings import format_settings as format_settings
from twinspark_rpc.settings import load_settings as load_settings
from twinspark_rpc.statuses import RemoteStatus as RemoteStatus
from twinspark_rpc.statuses import read_status as read_status
