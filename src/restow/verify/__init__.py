"""Named checks with evidence: may a plan begin, is it done, may a broker be stopped.

verdict = restow.verify(plan, snapshot)
"""

from restow._stages import make_callable
from restow.model import Check, CheckOutcome, Verdict
from restow.verify.broker_check import broker_check
from restow.verify.plan_done import verify
from restow.verify.preflight import blocking, preflight

__all__ = ["Check", "CheckOutcome", "Verdict", "blocking", "broker_check", "preflight", "verify"]

make_callable(__name__)
