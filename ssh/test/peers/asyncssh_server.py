"""A server by asyncssh: runs commands with the shell, serves files, forwards ports both ways. Its one argument is JSON:
port, host_keys (files), authorized_keys (file), password, algorithms, rekey_bytes."""
import asyncio
import json
import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    import asyncssh

wish = json.loads(sys.argv[1])


class Server(asyncssh.SSHServer):
    def password_auth_supported(self):
        return True

    def validate_password(self, username, password):
        return password == wish['password']

    def kbdint_auth_supported(self):
        return True

    def get_kbdint_challenge(self, username, lang, submethods):
        return 'Door', 'Say it.', '', [('Password: ', False)]

    def validate_kbdint_response(self, username, responses):
        return list(responses) == [wish['password']]

    def connection_requested(self, dest_host, dest_port, orig_host, orig_port):
        return True

    def server_requested(self, listen_host, listen_port):
        return True


async def copy(reader, writer):
    """Its own way to join a program with a channel reads twice at once when the channel is full; this does not."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def run(process):
    child = await asyncio.create_subprocess_shell(
        process.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )

    async def feed():
        await copy(process.stdin, child.stdin)
        child.stdin.close()

    feeding = asyncio.ensure_future(feed())
    await asyncio.gather(copy(child.stdout, process.stdout), copy(child.stderr, process.stderr))
    process.exit(await child.wait() & 0xFF)
    feeding.cancel()


async def serve():
    algorithms = wish['algorithms']
    await asyncssh.create_server(
        Server,
        '127.0.0.1',
        wish['port'],
        # Files would be read again for every connection.
        server_host_keys=[asyncssh.read_private_key(file) for file in wish['host_keys']],
        authorized_client_keys=wish['authorized_keys'],
        process_factory=run,
        sftp_factory=True,
        encoding=None,
        kex_algs=algorithms['kex'],
        encryption_algs=algorithms['ciphers'],
        mac_algs=algorithms['macs'],
        compression_algs=['none'],
        **({'rekey_bytes': wish['rekey_bytes']} if wish.get('rekey_bytes') else {}),
    )
    await asyncio.Event().wait()


asyncio.run(serve())
