"""A Holdfast worker in Python, standard library only: HOLDFAST_SERVER and HOLDFAST_TOKEN say where. Ctrl-C stops it."""
import json, os, signal, socket, threading, time, urllib.error, urllib.request, uuid

SERVER = os.environ.get("HOLDFAST_SERVER", "http://127.0.0.1:8484").rstrip("/")
TOKEN = os.environ["HOLDFAST_TOKEN"]
WORKER = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:6]}"  # unique for each start
stopping = threading.Event()


class Permanent(Exception):
    """Raise it when trying again would not help."""


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


def run(lease, handlers):
    task, token, ended, cancelled = lease["task"], lease["token"], threading.Event(), threading.Event()
    beat = threading.Thread(target=heartbeat, args=(task, token, lease["heartbeatEvery"], ended, cancelled), daemon=True)
    beat.start()
    try:
        output = handlers[task["type"]](task["input"], cancelled)
        finish = ("complete", {"output": output})
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


def refuse(payload, cancelled):
    raise Permanent(f"cannot pay {payload['amount']}")


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stopping.set())
    work({
        "add": lambda payload, cancelled: payload["a"] + payload["b"],
        "rest": lambda payload, cancelled: cancelled.wait(payload["seconds"]),  # ends at once when it is cancelled
        "pay": refuse,
    })
