"""A client by asyncssh that does what it is told, on one connection at a time; with certificates, and with security keys
that live in software: only the device is replaced, all that is sent comes from asyncssh."""
import asyncio
import hashlib
import threading
import warnings

with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    import asyncssh
    import asyncssh.sk_ecdsa
    import asyncssh.sk_eddsa
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
import worker

connection = None
loop = asyncio.new_event_loop()
# Forwarded connections come at any time, so the loop never rests.
threading.Thread(target=loop.run_forever, daemon=True).start()


def wait(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()


class Client(asyncssh.SSHClient):
    def __init__(self, interactive):
        self.interactive = interactive

    def kbdint_auth_requested(self):
        return '' if self.interactive is not None else None

    def kbdint_challenge_received(self, name, instructions, language, prompts):
        return [self.interactive for _ in prompts]


def connect(
    port, user, host_key, algorithms, key=None, certificate=None, token=None, password=None, interactive=None, rekey_bytes=None
):
    async def start():
        global connection
        keys = [software_token(**token)] if token else [(key, certificate)] if certificate else [key] if key else []
        connection, _ = await asyncssh.create_connection(
            lambda: Client(interactive),
            '127.0.0.1',
            port,
            username=user,
            known_hosts=asyncssh.import_known_hosts(''.join(f'[127.0.0.1]:{port} {line}\n' for line in host_key)),
            client_keys=keys or None,
            agent_path=None,
            config=None,
            password=password,
            kex_algs=algorithms['kex'],
            encryption_algs=algorithms['ciphers'],
            mac_algs=algorithms['macs'],
            server_host_key_algs=algorithms['hostKey'],
            compression_algs=['none'],
            **({'rekey_bytes': rekey_bytes} if rekey_bytes else {}),
        )
        return {'authenticated': True}

    return wait(start())


def software_token(type, file, touched=True):
    """A key of the type, its public line in the file; what a device would sign is signed here."""
    presence = 0x01 if touched else 0x00
    counter = 7

    def device(sign):
        def answer(data, application, *_):
            # Later versions hand over text and all of the data, earlier ones bytes and the hash.
            later = isinstance(application, str)
            hashed = hashlib.sha256(data).digest() if later else data
            name = application.encode() if later else application
            signed = hashlib.sha256(name).digest() + bytes([presence]) + counter.to_bytes(4, 'big') + hashed
            return (presence, counter, sign(signed), data) if later else (presence, counter, sign(signed))

        return answer

    if type == 'sk-ssh-ed25519@openssh.com':
        secret = ed25519.Ed25519PrivateKey.generate()
        public = secret.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        asyncssh.sk_eddsa.sk_enroll = lambda *_: (public, b'handle')
        asyncssh.sk_eddsa.sk_sign = device(secret.sign)
    else:
        secret = ec.generate_private_key(ec.SECP256R1())
        public = secret.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        asyncssh.sk_ecdsa.sk_enroll = lambda *_: (public, b'handle')
        asyncssh.sk_ecdsa.sk_sign = device(lambda signed: secret.sign(signed, ec.ECDSA(hashes.SHA256())))
    key = asyncssh.generate_private_key(type, application='ssh:hawser')
    key.write_public_key(file)
    return key


def certify(authority, key, principal, file):
    signer = asyncssh.read_private_key(authority)
    certificate = signer.generate_user_certificate(asyncssh.read_private_key(key), 'hawser', principals=[principal])
    certificate.write_certificate(file)
    return {'file': file}


def execute(command, input=None):
    async def run():
        done = await connection.run(command, input=worker.content(input) if input else b'', encoding=None)
        signal = done.exit_signal[0] if done.exit_signal else None
        return {
            'length': len(done.stdout),
            'sha256': worker.sha256(done.stdout),
            'stderr': done.stderr.decode(),
            'status': done.exit_status,
            **({'signal': signal} if signal else {}),
        }

    return wait(run())


def sftp(local, remote, back):
    async def use():
        async with connection.start_sftp_client() as client:
            await client.mkdir(remote)
            await client.put(local, f'{remote}/first')
            await client.posix_rename(f'{remote}/first', f'{remote}/second')
            await client.symlink('second', f'{remote}/link')
            await client.chmod(f'{remote}/second', 0o640)
            await client.utime(f'{remote}/second', (1_000_000_000, 1_000_000_001))
            names = sorted(name for name in await client.listdir(remote) if name not in ('.', '..'))
            stat = await client.stat(f'{remote}/link')
            await client.get(f'{remote}/second', back)
            async with client.open(f'{remote}/second', 'r+b') as opened:
                await opened.write(b'changed', 100)
                middle = await opened.read(11, 98)
            try:
                await client.stat(f'{remote}/third')
                missing = None
            except asyncssh.SFTPNoSuchFile:
                missing = 'not found'
            answer = {
                'names': names,
                'size': stat.size,
                'mode': stat.permissions & 0o7777,
                'mtime': stat.mtime,
                'link': await client.readlink(f'{remote}/link'),
                'resolved': await client.realpath(f'{remote}/link'),
                'middle': middle[2:9].decode(),
                'missing': missing,
            }
            await client.remove(f'{remote}/link')
            await client.remove(f'{remote}/second')
            await client.rmdir(remote)
            return answer

    return wait(use())


def direct(port, input):
    async def send():
        reader, writer = await connection.open_connection('127.0.0.1', port)
        writer.write(worker.content(input))
        writer.write_eof()
        back = await reader.read()
        writer.close()
        return {'length': len(back), 'sha256': worker.sha256(back)}

    return wait(send())


def listen():
    async def echo(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
        writer.close()

    async def ask():
        listener = await connection.start_server(lambda host, port: echo, '127.0.0.1', 0)
        return {'port': listener.get_port()}

    return wait(ask())


def close():
    async def end():
        connection.close()
        await connection.wait_closed()
        return {}

    return wait(end())


worker.answer_requests(
    {'connect': connect, 'certify': certify, 'execute': execute, 'sftp': sftp, 'direct': direct, 'listen': listen, 'close': close}
)
