"""Apache's kafka-reassign-partitions in one JVM: its output and its exit code.

A JVM for each call would take most of the time. The tool exits through Kafka's own `Exit`, whose procedure
can be replaced; ours records the code and throws, so that the JVM lives on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject

_CLASS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The output of a tool, and its exit code."""

    code: int
    out: str
    err: str


class OriginalTool:
    """The tool of the version that the JVM has loaded."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._gateway = gateway
        self._java = gateway.jvm
        self._codes = self._java.java.util.ArrayList()
        exit_ = self._java.org.apache.kafka.common.utils.Exit
        exit_.setExitProcedure(self._leave())

    def run(self, *arguments: str) -> Outcome:
        """Run it as a script would. An exception that its main does not catch is exit code 1."""
        from py4j.protocol import Py4JJavaError

        java = self._java
        system = java.java.lang.System
        out, err = java.java.io.ByteArrayOutputStream(), java.java.io.ByteArrayOutputStream()
        before = system.out, system.err
        given = self._gateway.new_array(java.java.lang.String, len(arguments))
        for number, argument in enumerate(arguments):
            given[number] = argument
        ends = len(self._codes)
        uncaught = ""
        system.setOut(java.java.io.PrintStream(out, True, "UTF-8"))
        system.setErr(java.java.io.PrintStream(err, True, "UTF-8"))
        try:
            java.org.apache.kafka.tools.reassign.ReassignPartitionsCommand.main(given)
        except Py4JJavaError as thrown:
            if len(self._codes) == ends:
                uncaught = str(thrown.java_exception.toString())
        finally:
            system.setOut(before[0])
            system.setErr(before[1])
        code = int(self._codes[ends]) if len(self._codes) > ends else 0
        return Outcome(1 if uncaught else code, out.toString("UTF-8"), err.toString("UTF-8") + uncaught)

    def _leave(self) -> JavaObject:
        """Return an exit procedure made of method handles: record the code, then throw."""
        java = self._java
        lang, invoke = java.java.lang, java.java.lang.invoke
        handles, kinds = invoke.MethodHandles, invoke.MethodType
        find = lang.Class.forName
        whole, text = lang.Integer.TYPE, find("java.lang.String")
        nothing, flag = lang.Void.TYPE, lang.Boolean.TYPE
        thing, problem = find("java.lang.Object"), find("java.lang.IllegalStateException")
        both = java.java.util.ArrayList()
        both.add(whole)
        both.add(text)
        note = handles.publicLookup().findVirtual(
            find("java.util.List"), "add", kinds.methodType(flag, thing)
        )
        note = handles.dropArguments(
            note.bindTo(self._codes).asType(kinds.methodType(nothing, whole)), 1, _one(java, text)
        )
        throw = handles.throwException(nothing, problem).bindTo(lang.IllegalStateException("the tool ends"))
        throw = handles.dropArguments(throw, 0, both)
        procedure = find("org.apache.kafka.common.utils.Exit$Procedure")
        return invoke.MethodHandleProxies.asInterfaceInstance(procedure, handles.foldArguments(throw, note))


def _one(java: JavaObject, thing: JavaObject) -> JavaObject:
    found = java.java.util.ArrayList()
    found.add(thing)
    return found
