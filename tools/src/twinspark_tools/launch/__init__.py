"""Starts every service of one instance, restarts what dies, and leaves no process behind: the program of `make run`.

launcher -> supervisord -> services. The launcher turns Ctrl-C, SIGTERM and SIGHUP into an orderly stop. Should it be
killed, the kernel sends supervisord SIGTERM; should supervisord be killed, the kernel kills the services (child.py).
"""
