"""The reasons why the queue of a server gives no answer."""


class QueueFullError(Exception):
    """More sentences wait than may."""


class QueryProblem(Exception):
    """A query that its model cannot do: the text says why."""


class WorkerFailure(Exception):
    """The server cannot answer: a process has failed or died."""
