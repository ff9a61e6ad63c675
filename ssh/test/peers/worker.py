"""What the client scripts have in common: one JSON request a line comes in, one JSON answer a line goes out, in order.
A failure is an answer, too: its class and its words, so that a test can expect it."""
import hashlib
import json
import sys


def answer_requests(handlers):
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handlers[request.pop('do')](**request)
        except Exception as error:
            answer = {'error': f'{type(error).__name__}: {error}'}
        print(json.dumps(answer), flush=True)


def content(file):
    with open(file, 'rb') as opened:
        return opened.read()


def sha256(data):
    return hashlib.sha256(data).hexdigest()
