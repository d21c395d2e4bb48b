"""One call of the tool: arguments in, lines out, an exit code. Every failure is 1, as in the original."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.errors import RestowError
from restow.kafka_tool.actions import Call, Terse
from restow.kafka_tool.arguments import Action
from restow.plan.files.kafka_json import InvalidReassignment

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from restow.client import Admin
    from restow.kafka_tool.actions import JsonFiles
    from restow.kafka_tool.arguments import Arguments
    from restow.runtime.clock import Clock

DONE, FAILED = 0, 1


async def run_tool(
    arguments: Arguments,
    connect: Callable[[], AbstractAsyncContextManager[Admin]],
    *,
    read: JsonFiles,
    say: Callable[[str], None],
    clock: Clock,
) -> int:
    """Run the action, print its lines, and return the exit code."""
    try:
        async with connect() as admin:
            call = Call(arguments, admin, read, say, clock)
            actions = {
                Action.GENERATE: call.generate,
                Action.EXECUTE: call.execute,
                Action.VERIFY: call.verify,
                Action.CANCEL: call.cancel,
                Action.LIST: call.list,
            }
            await actions[arguments.action]()
    except Terse as error:
        say(str(error))
    except InvalidReassignment as error:
        say(f"Error: {error.kafka_says}")
    except (RestowError, OSError) as error:
        say(f"Error: {error}")
    else:
        return DONE
    return FAILED
