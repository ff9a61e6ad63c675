"""A server by paramiko: runs commands with the shell, serves files, forwards ports both ways. Its one argument is JSON:
port, host_keys (files), authorized_keys (file), password, algorithms, moduli (file), rekey_bytes."""
import json
import os
import socket
import subprocess
import sys
import threading

import paramiko

wish = json.loads(sys.argv[1])


def load(file):
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key_file(file)
        except paramiko.SSHException:
            pass
    raise ValueError('no key of a known type')


host_keys = [load(file) for file in wish['host_keys']]
with open(wish['authorized_keys']) as lines:
    authorized = {line.split()[1] for line in lines if line.strip()}


def background(work, *args):
    threading.Thread(target=work, args=args, daemon=True).start()


def copy(read, write, end):
    try:
        while data := read(65536):
            write(data)
        end()
    except OSError:
        pass


def join(channel, sock):
    """Both directions until both have ended."""
    up = threading.Thread(target=copy, args=(channel.recv, sock.sendall, lambda: sock.shutdown(socket.SHUT_WR)))
    up.start()
    copy(sock.recv, channel.sendall, channel.shutdown_write)
    up.join()
    channel.close()
    sock.close()


def run(channel, command):
    child = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def write_in(data):
        child.stdin.write(data)
        child.stdin.flush()

    background(copy, channel.recv, write_in, child.stdin.close)
    outputs = [
        threading.Thread(target=copy, args=(child.stdout.read1, channel.sendall, lambda: None)),
        threading.Thread(target=copy, args=(child.stderr.read1, channel.sendall_stderr, lambda: None)),
    ]
    for output in outputs:
        output.start()
    for output in outputs:
        output.join()
    channel.send_exit_status(child.wait() & 0xFF)
    channel.shutdown_write()
    channel.close()


class Server(paramiko.ServerInterface):
    def __init__(self, transport):
        self.transport = transport

    def get_allowed_auths(self, username):
        return 'publickey,password,keyboard-interactive'

    def check_auth_publickey(self, username, key):
        return paramiko.AUTH_SUCCESSFUL if key.get_base64() in authorized else paramiko.AUTH_FAILED

    def check_auth_password(self, username, password):
        return paramiko.AUTH_SUCCESSFUL if password == wish['password'] else paramiko.AUTH_FAILED

    def check_auth_interactive(self, username, submethods):
        return paramiko.InteractiveQuery('Door', 'Say it.', ('Password: ', False))

    def check_auth_interactive_response(self, responses):
        return paramiko.AUTH_SUCCESSFUL if list(responses) == [wish['password']] else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED if kind == 'session' else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel, command):
        background(run, channel, command)
        return True

    def check_channel_direct_tcpip_request(self, chanid, origin, destination):
        try:
            sock = socket.create_connection(destination)
        except OSError:
            return paramiko.OPEN_FAILED_CONNECT_FAILED
        direct[chanid] = sock
        return paramiko.OPEN_SUCCEEDED

    def check_port_forward_request(self, address, port):
        listener = socket.create_server((address, port))
        actual = listener.getsockname()[1]

        def accept():
            while True:
                sock, origin = listener.accept()
                background(join, self.transport.open_forwarded_tcpip_channel(origin, (address, actual)), sock)

        background(accept)
        return actual


direct = {}


def attributes(stat, name=None):
    return paramiko.SFTPAttributes.from_stat(stat, name)


def answered(work):
    """What the system refuses becomes a code."""

    def wrapped(*args):
        try:
            result = work(*args)
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)
        return paramiko.SFTP_OK if result is None else result

    return wrapped


class Handle(paramiko.SFTPHandle):
    def stat(self):
        return attributes(os.fstat(self.readfile.fileno()))

    def chattr(self, attr):
        paramiko.SFTPServer.set_file_attr(self.filename, attr)
        return paramiko.SFTP_OK


class Files(paramiko.SFTPServerInterface):
    @answered
    def list_folder(self, path):
        return [attributes(os.lstat(os.path.join(path, name)), name) for name in os.listdir(path)]

    @answered
    def stat(self, path):
        return attributes(os.stat(path))

    @answered
    def lstat(self, path):
        return attributes(os.lstat(path))

    @answered
    def open(self, path, flags, attr):
        opened = os.fdopen(os.open(path, flags, 0o666 if attr.st_mode is None else attr.st_mode), 'wb' if flags & os.O_WRONLY else 'rb')
        handle = Handle(flags)
        handle.filename = path
        handle.readfile = handle.writefile = opened
        return handle

    @answered
    def remove(self, path):
        os.remove(path)

    @answered
    def rename(self, old, new):
        os.rename(old, new)

    posix_rename = rename

    @answered
    def mkdir(self, path, attr):
        os.mkdir(path)

    @answered
    def rmdir(self, path):
        os.rmdir(path)

    @answered
    def chattr(self, path, attr):
        paramiko.SFTPServer.set_file_attr(path, attr)

    @answered
    def readlink(self, path):
        return os.readlink(path)

    @answered
    def symlink(self, target, path):
        os.symlink(target, path)

    def canonicalize(self, path):
        return os.path.realpath(path)


def serve(sock):
    transport = paramiko.Transport(sock)
    options = transport.get_security_options()
    options.kex = wish['algorithms']['kex']
    options.ciphers = wish['algorithms']['ciphers']
    options.digests = wish['algorithms']['macs']
    if wish.get('rekey_bytes'):
        transport.packetizer.REKEY_BYTES = wish['rekey_bytes']
    for key in host_keys:
        transport.add_server_key(key)
    transport.set_subsystem_handler('sftp', paramiko.SFTPServer, Files)
    try:
        transport.start_server(server=Server(transport))
        while transport.is_active():
            channel = transport.accept(0.2)
            if channel is not None and channel.get_id() in direct:
                background(join, channel, direct.pop(channel.get_id()))
    except (paramiko.SSHException, EOFError):
        pass


listener = socket.create_server(('127.0.0.1', wish['port']))
# Without a file of groups it would not offer the exchange of groups.
paramiko.Transport.load_server_moduli(wish['moduli'])
while True:
    background(serve, listener.accept()[0])
