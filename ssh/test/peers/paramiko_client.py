"""A client by paramiko that does what it is told, on one connection at a time."""
import socket
import threading

import paramiko
import worker

transport = None


def connect(port, user, host_key, algorithms, key=None, password=None, interactive=None, rekey_bytes=None):
    global transport
    transport = paramiko.Transport(socket.create_connection(('127.0.0.1', port)))
    options = transport.get_security_options()
    options.kex = algorithms['kex']
    options.ciphers = algorithms['ciphers']
    options.digests = algorithms['macs']
    options.key_types = algorithms['hostKey']
    if rekey_bytes:
        transport.packetizer.REKEY_BYTES = rekey_bytes
    transport.start_client(timeout=60)
    theirs = transport.get_remote_server_key()
    if f'{theirs.get_name()} {theirs.get_base64()}' not in host_key:
        raise ValueError('another host key')
    if key:
        transport.auth_publickey(user, load(key))
    elif interactive is not None:
        transport.auth_interactive(user, lambda title, instructions, prompts: [interactive for _ in prompts])
    else:
        transport.auth_password(user, password)
    return {'authenticated': transport.is_authenticated()}


def load(file):
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key_file(file)
        except paramiko.SSHException:
            pass
    raise ValueError('no key of a known type')


def execute(command, input=None):
    channel = transport.open_session()
    channel.exec_command(command)

    def feed():
        if input:
            channel.sendall(worker.content(input))
        channel.shutdown_write()

    feeder = threading.Thread(target=feed)
    feeder.start()
    errors = []
    listener = threading.Thread(target=lambda: errors.append(channel.makefile_stderr('rb').read()))
    listener.start()
    output = channel.makefile('rb').read()
    feeder.join()
    listener.join()
    status = channel.recv_exit_status()
    channel.close()
    return {'length': len(output), 'sha256': worker.sha256(output), 'stderr': errors[0].decode(), 'status': status}


def sftp(local, remote, back):
    client = paramiko.SFTPClient.from_transport(transport)
    client.mkdir(remote)
    client.put(local, f'{remote}/first')
    client.posix_rename(f'{remote}/first', f'{remote}/second')
    client.symlink('second', f'{remote}/link')
    client.chmod(f'{remote}/second', 0o640)
    client.utime(f'{remote}/second', (1_000_000_000, 1_000_000_001))
    names = sorted(client.listdir(remote))
    stat = client.stat(f'{remote}/link')
    client.get(f'{remote}/second', back)
    with client.open(f'{remote}/second', 'r+b') as opened:
        opened.seek(100)
        opened.write(b'changed')
        opened.seek(98)
        middle = opened.read(11)
    try:
        client.stat(f'{remote}/third')
        missing = None
    except FileNotFoundError:
        missing = 'not found'
    answer = {
        'names': names,
        'size': stat.st_size,
        'mode': stat.st_mode & 0o7777,
        'mtime': stat.st_mtime,
        'link': client.readlink(f'{remote}/link'),
        'resolved': client.normalize(f'{remote}/link'),
        'middle': middle[2:9].decode(),
        'missing': missing,
    }
    client.remove(f'{remote}/link')
    client.remove(f'{remote}/second')
    client.rmdir(remote)
    client.close()
    return answer


def direct(port, input):
    channel = transport.open_channel('direct-tcpip', ('127.0.0.1', port), ('127.0.0.1', 1))
    data = worker.content(input)

    def feed():
        channel.sendall(data)
        channel.shutdown_write()

    feeder = threading.Thread(target=feed)
    feeder.start()
    back = channel.makefile('rb').read()
    feeder.join()
    channel.close()
    return {'length': len(back), 'sha256': worker.sha256(back)}


def listen():
    def echo(channel):
        while data := channel.recv(65536):
            channel.sendall(data)
        channel.close()

    def came(channel, origin, server):
        threading.Thread(target=echo, args=(channel,), daemon=True).start()

    return {'port': transport.request_port_forward('127.0.0.1', 0, came)}


def close():
    transport.close()
    return {}


worker.answer_requests(
    {'connect': connect, 'execute': execute, 'sftp': sftp, 'direct': direct, 'listen': listen, 'close': close}
)
