"""A Holdfast worker in Python, standard library only: HOLDFAST_SERVER and HOLDFAST_TOKEN say where. Ctrl-C stops it."""
import json, os, signal, socket, threading, time, urllib.error, urllib.request, uuid

SERVER = os.environ.get("HOLDFAST_SERVER", "http://127.0.0.1:8484").rstrip("/")
TOKEN = os.environ["HOLDFAST_TOKEN"]
WORKER = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:6]}"  # unique for each start
stopping = threading.Event()


class Permanent(Exception):
    """Raise it when trying again would not help."""


class Parked(Exception):
    """The task sleeps or waits for a signal: the handler starts from the top when it is time."""


def call(path, **body):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{SERVER}/api/v1{path}", json.dumps(body).encode(), headers)
    for attempt in range(5):  # finishing may be repeated; a claim whose answer is lost lapses
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise RuntimeError(json.load(error)["error"]["code"]) from None
        except OSError:
            pass
        time.sleep(0.2 * 2**attempt)
    raise RuntimeError("SERVER_UNREACHABLE")


def heartbeat(task, token, every, ended, cancelled):
    while not ended.wait(every / 1000):
        try:
            if call(f"/tasks/{task['id']}/heartbeat", token=token)["cancelRequested"]:
                cancelled.set()
        except RuntimeError:
            return cancelled.set()  # the lease is lost: another worker may have the task


class Run:
    """What a handler gets beside its input: `cancelled`, and durable steps. Each call may be repeated; its answer says what to do."""

    def __init__(self, task, token, cancelled):
        self.cancelled = cancelled
        self.ask = lambda path, **body: call(f"/tasks/{task['id']}/{path}", token=token, **body)

    def step(self, name, work):
        begun = self.ask("step", name=name)
        if begun["state"] == "run":  # `key` is the same in every run: the idempotency key of the effect
            begun = self.ask("step", name=name, value=work(begun["key"]))
        return begun["value"]

    def sleep(self, name, duration):
        if self.ask("sleep", name=name, duration=duration)["state"] != "over":
            raise Parked(name)

    def wait_for(self, name, **options):
        outcome = self.ask("wait-for", name=name, **options)
        if outcome["state"] in ("parked", "cancelled"):
            raise Parked(name)
        if outcome["state"] != "taken":
            raise TimeoutError(f"no signal came for {name}")
        return outcome.get("value")


def run(lease, handlers):
    task, token, ended, cancelled = lease["task"], lease["token"], threading.Event(), threading.Event()
    beat = threading.Thread(target=heartbeat, args=(task, token, lease["heartbeatEvery"], ended, cancelled), daemon=True)
    beat.start()
    try:
        output = handlers[task["type"]](task["input"], Run(task, token, cancelled))
        finish = ("complete", {"output": output})
    except Parked as parked:
        ended.set()
        return print(task["type"], "parked in", parked, flush=True)
    except Exception as error:
        what = {"name": type(error).__name__, "message": str(error)}
        finish = ("fail", {"error": what, "permanent": isinstance(error, Permanent)})
    ended.set()
    try:
        print(task["type"], call(f"/tasks/{task['id']}/{finish[0]}", token=token, **finish[1])["status"], flush=True)
    except RuntimeError as refused:
        print(task["type"], "not written:", refused, flush=True)


def work(handlers):
    while not stopping.is_set():
        for lease in call("/claim", workerId=WORKER, types=list(handlers), wait="2s")["leases"]:
            run(lease, handlers)


def refuse(payload, run):
    raise Permanent(f"cannot pay {payload['amount']}")


def order(payload, run):
    receipt = run.step("charge", lambda key: {"key": key, "amount": payload["amount"]})
    run.sleep("cool-down", payload["pause"])
    approval = run.wait_for("approved", timeout="1d")
    return run.step("ship", lambda key: {"receipt": receipt["key"], "approved_by": approval["by"]})


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stopping.set())
    work({
        "add": lambda payload, run: payload["a"] + payload["b"],
        "rest": lambda payload, run: run.cancelled.wait(payload["seconds"]),  # ends at once when it is cancelled
        "pay": refuse,
        "order": order,
    })
