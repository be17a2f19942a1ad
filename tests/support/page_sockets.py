"""The websockets of a page that a test answers."""

from playwright.sync_api import Page, WebSocketRoute


class Sockets(list[WebSocketRoute]):
    """The websockets of a page, in the order in which it opened them."""

    def __call__(self, socket: WebSocketRoute) -> None:
        self.append(socket)

    def wait_for(self, page: Page, count: int) -> WebSocketRoute:
        for _ in range(200):
            if len(self) >= count:
                return self[count - 1]
            page.wait_for_timeout(25)
        raise AssertionError(f"only {len(self)} sockets were opened")
