def open_session(s,o): pass
