"""Live pages over websockets: new renderings when events are recorded, and pod logs while they are written."""
