"""Which messages of VS Code's page to its server come from a person. The page sends many by itself, each second.

A frame of the websocket holds messages of VS Code's own protocol, each with a head of 13 bytes: its kind, two numbers,
and its size. Regular ones are calls to the server's channels, or calls to and replies from extensions. What is not
known counts as a person's.
"""

import re

_HEAD, _REGULAR, _MOST = 13, 1, 64
_LAST_CALL = 4
"""Of the kinds of messages to extensions; the higher ones are replies."""
_CHANNEL_CALL = re.compile(rb"\x04\x04\x06(.)\x06[\x80-\xff]{0,5}[\x00-\x7f]\x01.([\w$]+)\x01.([\w$]+)", re.DOTALL)
_CALL = b"d"
"""The others subscribe to something, or end that."""
_OF_CHANNELS = re.compile(
    rb"(telemetry|logger|remoteextensionsenvironment|remoteExtensionsScanner|extensionGalleryManifest"
    rb"|NativeMcpDiscoveryHelper|userDataProfiles)\..*|extensions\.get\w*"
    rb"|remoteFilesystem\.(stat|readFile|readdir|realpath|open|close|read|watch|unwatch)"
    rb"|remoteterminal\.\$(get\w*|accept\w*|acknowledgeDataEvent|orphanQuestionReply|reduceConnectionGraceTime"
    rb"|refreshProperty|setTerminalLayoutInfo|updateTitle|updateIcon)"
)
"""Reading, and what follows from output of terminals and changes of files."""
_OF_EXTENSIONS = re.compile(
    rb"\$(onFileEvent|onDidChangeWindowActive|provide\w*|initialize\w*|acceptProviderInfos|acceptChatModelMetadata"
    rb"|acceptEditorDiffInformation|acceptTerminalTitleChange|acceptTerminalProcess\w*|acceptProcess\w*)"
)


def is_of_person(data: bytes) -> bool:
    """Whether one of the messages in this frame comes from a person."""
    begin = 0
    for _message in range(_MOST):
        if begin + _HEAD > len(data):
            return False
        size = int.from_bytes(data[begin + 9 : begin + _HEAD])
        if data[begin] == _REGULAR and _is_call_of_person(data[begin + _HEAD : begin + _HEAD + min(size, 200)]):
            return True
        begin += _HEAD + size
    return True


def _is_call_of_person(body: bytes) -> bool:
    if call := _CHANNEL_CALL.match(body):
        kind, channel, command = call.groups()
        return kind == _CALL and not _OF_CHANNELS.fullmatch(channel + b"." + command)
    if not body or body[0] > _LAST_CALL:
        return False
    name = body[7 : 7 + body[6]] if len(body) > 7 else b""  # noqa: PLR2004
    return not _OF_EXTENSIONS.fullmatch(name)
