"""Endpoints of resumable uploads into the folders of pods: tus 1.0.0 with creation, expiration and termination.

The web process splits a long PATCH into pieces (`pages.admission.upload_pieces`); each comes here as a request of its
own. So the permission of the person is read again for each piece, and no request waits for the network with a thread
and a connection to the database.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import IO, Any
from uuid import UUID

from django.urls import reverse
from django.utils.http import http_date
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.parsers import read_bounded
from hekla.api.problems import TooLarge
from hekla.api.throttles import UploadThrottle
from hekla.api.v1.following import AttemptQuery, find_pod
from hekla.api.views import ApiView, person
from hekla.apps.accounts.models import ApiToken
from hekla.apps.accounts.scopes import MissingScope, Scope
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import FileUpload
from hekla.backends.uploads import MOST_BYTES
from hekla.domain.errors import Invalid, NotFound, Problem, Refused
from hekla.lib import clock
from hekla.pod_files import uploading

VERSION = "1.0.0"
_FENCE = "Upload-Fence"
_LONGEST_PATH = 4096
_MOST_DIGITS = 19
_REPLACES = 64


class UnsupportedTus(APIException):
    """The client wants another version of the protocol."""

    status_code = 412
    default_code = "unsupported_version"


class UploadSerializer(serializers.Serializer[Any]):
    """An upload. `sha256`: of the finished file; empty before."""

    uid = serializers.UUIDField()
    path = serializers.CharField()
    size_bytes = serializers.IntegerField(source="size")
    received_bytes = serializers.IntegerField(source="received")
    sha256 = serializers.CharField(allow_blank=True)
    expires_at = serializers.DateTimeField()


class UploadsSerializer(serializers.Serializer[Any]):
    """The unfinished uploads of the person, newest first."""

    uploads = UploadSerializer(many=True)


class PieceParser(BaseParser):
    """Passes on the bytes of a piece."""

    media_type = "application/offset+octet-stream"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, bytes]:
        """The piece under `bytes`. Raises TooLarge."""
        return {"bytes": read_bounded(stream, parser_context)}


def _header(name: str, description: str, *, is_required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, required=is_required, description=description)


class TusView(ApiView):
    """Answers with the headers of the protocol."""

    writes = Scope.JOBS
    parser_classes: tuple[type[BaseParser], ...] = (PieceParser,)  # type: ignore[assignment]
    throttle_classes = (UploadThrottle,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Check the request. Raises UnsupportedTus."""
        super().initial(request, *args, **kwargs)
        if request.headers.get("Tus-Resumable", VERSION) != VERSION:
            raise UnsupportedTus(_("This server supports version %(version)s of tus.") % {"version": VERSION})

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
        """Add the headers of the protocol."""
        response.headers.setdefault("Tus-Resumable", VERSION)
        response.headers.setdefault("Tus-Version", VERSION)
        return super().finalize_response(request, response, *args, **kwargs)


class PodUploadsView(TusView):
    queries = {"get": AttemptQuery, "post": AttemptQuery}

    @extend_schema(responses=UploadsSerializer)
    def get(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Your unfinished uploads to a pod, to continue them."""
        pod = find_pod(uid, person(request), task, index, self.query.get("attempt"))
        services.require_right(pod.job, person(request))
        found = selectors.unfinished_uploads(pod, person(request))
        return Response(UploadsSerializer({"uploads": found}).data)

    @extend_schema(
        request=None,
        responses={201: UploadSerializer},
        parameters=[
            _header("Upload-Length", "size of the file in bytes", is_required=True),
            _header(
                "Upload-Metadata",
                "keys with values in base64: `path` below the working folder (or `filename`); `replaces`: the SHA-256 "
                "of the file that may be replaced, or `*` for any; without it the file must not exist",
                is_required=True,
            ),
        ],
    )
    def post(self, request: Request, uid: UUID, task: str, index: int) -> Response:
        """Begin to write a file into the folder of a pod (tus 1.0.0). The file appears when all bytes are there."""
        user, now = person(request), clock.now()
        pod = find_pod(uid, user, task, index, self.query.get("attempt"))
        services.require_right(pod.job, user)
        uploading.require_uploads(pod)
        size, path, replaces = _announced(request)
        uploading.drop_expired(now=now, person=user)
        upload = uploading.begin(pod, path=path, size=size, replaces=replaces, user=user, now=now)
        try:
            upload = uploading.finish(upload, user=user, now=now)
        except (Refused, NotFound):
            uploading.cancel(upload, user=user)
            raise
        answer = Response(UploadSerializer(upload).data, status=201)
        answer.headers["Location"] = reverse("api:v1:upload", args=[upload.uid])
        return _with_state(answer, upload)


class UploadView(TusView):
    @extend_schema(responses=UploadSerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """An upload: its size, and the bytes that arrived."""
        upload = _find(request, uid)
        return _with_state(Response(UploadSerializer(upload).data), upload)

    @extend_schema(exclude=True)
    def head(self, request: Request, uid: UUID) -> Response:
        """Where to continue. From now on, older requests write nothing. So a token needs the right to write."""
        if isinstance(request.auth, ApiToken) and not request.auth.allows(self.writes):
            raise MissingScope(self.writes)
        user = person(request)
        upload = services.fence_upload(_find(request, uid), user=user)
        finished = uploading.finish(upload, user=user, now=clock.now())
        answer = _with_state(Response(status=200), finished)
        answer.headers["Upload-Length"], answer.headers["Cache-Control"] = str(upload.size), "no-store"
        return answer

    @extend_schema(
        request={"application/offset+octet-stream": bytes},
        responses={204: None},
        parameters=[_header("Upload-Offset", "position of the first byte", is_required=True)],
    )
    def patch(self, request: Request, uid: UUID) -> Response:
        """Write the next bytes. After the last one, the file has its name."""
        upload, user, now = _find(request, uid), person(request), clock.now()
        uploading.require_uploads(upload.pod)
        fence = request.headers.get(_FENCE, "")
        offset = _number(request.headers.get("Upload-Offset", ""), "Upload-Offset")
        data = _piece(request.data)
        if not fence:
            upload.fence = services.fence_upload(upload, user=user, offset=offset).fence
        elif fence != str(upload.fence):
            raise services.StaleUpload(_("A newer request continues this upload."))
        written = uploading.append(upload, offset, data, user=user, now=now)
        return _with_state(Response(status=204), uploading.finish(written, user=user, now=now))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """Cancel an upload. A finished file stays."""
        uploading.cancel(_find(request, uid), user=person(request))
        return Response(status=204)


def _piece(data: object) -> bytes:
    """The bytes of a body. An empty one is not parsed."""
    found = data.get("bytes", b"") if isinstance(data, dict) else b""
    return found if isinstance(found, bytes) else b""


def _find(request: Request, uid: UUID) -> FileUpload:
    upload = selectors.upload(uid, person(request))
    services.require_right(upload.pod.job, person(request))
    return upload


def _with_state(answer: Response, upload: FileUpload) -> Response:
    answer.headers["Upload-Offset"] = str(upload.received)
    answer.headers["Upload-Expires"] = http_date(upload.expires_at.timestamp())
    answer.headers[_FENCE] = str(upload.fence)
    return answer


def _announced(request: Request) -> tuple[int, str, str]:
    """Size, path and `replaces` of a new upload. Raises Invalid, TooLarge."""
    size = _number(request.headers.get("Upload-Length", ""), "Upload-Length")
    if size > MOST_BYTES:
        raise TooLarge(_("A file may have %(size)d GiB.") % {"size": MOST_BYTES // 2**30})
    facts = _metadata(request.headers.get("Upload-Metadata", ""))
    path, replaces = facts.get("path") or facts.get("filename", ""), facts.get("replaces", "")
    if not path or len(path) > _LONGEST_PATH or "\0" in path:
        raise Invalid([Problem("Upload-Metadata", _("The path is missing, too long or impossible."))])
    if replaces not in ("", "*") and not _is_digest(replaces):
        raise Invalid([Problem("Upload-Metadata", _("“replaces” is a SHA-256, or *."))])
    return size, path, replaces


def _metadata(text: str) -> dict[str, str]:
    """Keys and values. Raises Invalid."""
    try:
        pairs = (pair.strip().partition(" ") for pair in text.split(",") if pair.strip())
        return {key: base64.b64decode(value, validate=True).decode() for key, _space, value in pairs}
    except (binascii.Error, ValueError) as error:
        raise Invalid([Problem("Upload-Metadata", _("Write keys with values in base64 of UTF-8."))]) from error


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise Invalid([Problem(name, _("Write a number of bytes in this header."))])
    return int(text)


def _is_digest(text: str) -> bool:
    return len(text) == 2 * hashlib.sha256().digest_size and all(sign in "0123456789abcdef" for sign in text)
