import { BOUNDS, DEFAULTS, DOCUMENTED_LIMITS } from '../verify/options.ts'
// The part of each --help that follows the options. No line is wider than 80 columns.

/** Where packages and docs/installing.md put the configuration. */
export const DEFAULT_CONFIG = '/etc/postern/postern.yaml'

/** The configuration that commands use in its folder, so that none needs `--config` there. `init` writes it by default. */
export const OWN_CONFIG = 'postern.yaml'

/** Where packages and docs/installing.md put the state. */
export const DEFAULT_STATE = '/var/lib/postern'

/** Where the Debian package keeps the pages. */
export const PAGES = '/usr/share/doc/postern'

export const PROGRAM_DESCRIPTION = `A reverse-proxy sidecar for a device without access control. It serves
POST /oauth/token itself, checks bearer tokens, applies rate limits, forwards
admitted requests, and exports Prometheus metrics.`

export const PROGRAM = `
First steps:
  postern demo      try Postern in front of a sample device
  postern init      write a first configuration
  postern check     test everything in the configuration
  postern serve     run the sidecar
  postern try       get a token, and request a path with it
  postern verify    prove that the limits hold, against any server with this API

Exit codes: 0 stopped on purpose, 1 failed while running, 2 bad usage or
configuration, 141 the reader of the output has left (as by SIGPIPE).

A page such as docs/operating.md is in the repository; the Debian package has
it as ${PAGES}/operating.md.`

export const SERVE = `
Each configuration key can be set in three places: --set overrides the
environment, which overrides the file. postern.yaml in this folder needs no
--config, if it and the folders above it belong to root or to you, and nobody
else may write them. A line on standard error then names it.
  postern serve --config postern.yaml --set limits.api.requests=120
  POSTERN_LIMITS_API_REQUESTS=120 postern serve
  postern serve --set upstream.url=http://192.0.2.7 \\
    --set password.file=/etc/postern/password

--instance boiler reads /etc/postern/devices/boiler.yaml and keeps the state in
/var/lib/postern/devices/boiler, as postern-device@boiler.service does.

SIGHUP reloads the configuration, as does a change of the file, the certificate
or the key. SIGTERM or SIGINT stops the sidecar gracefully; a second signal
stops it at once.`

export const CHECK = `
The first line says whether Postern can start, and how, or how many things there
are to mend. Each check then prints one line, problems first: FAILED, WARNING
(it works, but act soon) or ok. An indented line says what the problem means and
what to do. An address that the running sidecar of this state_dir uses is ok.
Run it as the sidecar's user, who has to be able to read the files:
  runuser -u postern -- postern check
  runuser -u postern -- postern check --instance boiler
  postern check --quiet || echo 'not now'
  postern check --json | jq '.checks[] | select(.result != "ok")'

Each PATH is requested once with GET, signed in as upstream.auth says: name the
pages of an API that clients use.
  postern check /api/status /api/log
--uploads PATH sends two POSTs of 4 KiB of text to PATH at the device, one with
its length and one in chunks, and says whether the answers differ. The device
acts on them: name only a path that may be posted to.

Only --uploads changes anything. Exit codes: 0 if everything works; 2 if serve
would not start, because the configuration or a file that it names is unusable;
1 if something else fails, such as a device that does not respond.`

/** How the commands for a running sidecar find it. */
const FINDS = `The command finds the running sidecar by state_dir, so it needs the same
configuration: name it with --config or --instance, unless it is postern.yaml in
this folder, or ${DEFAULT_CONFIG}. Run it as the sidecar's user or
as root.
A mistake in that file costs one line of warning, unless it is in a key that
says where the sidecar is. --state-dir finds the sidecar without a file.`

export const HEALTHY = `
The command asks at admin.address, so it needs the same configuration: name it
with --config or --instance, unless it is postern.yaml in this folder, or
${DEFAULT_CONFIG}. It prints one line.
A mistake in that file costs one more line, a warning, unless it is in a key
that says where the sidecar is. --admin finds the sidecar without a file.
The container image has it as its health check.`

export const STATUS = `
${FINDS}`

export const EXPLAIN = `
It prints what the request was taken for, in whose window it counted, which
token was found, what the device answered, and where the time went. Without an
id it lists up to 100 of the last requests: equally many of each reason of a
refusal, of failures, and of the others.
  postern explain 1f0c5a4bd67e4a1c9d0e7b3f5a2c8e61
  postern explain --status 5xx
  postern explain --reason rate-limited --json | jq '.requests[].client'

The sidecar remembers the last requests of each kind:
  answered                      800, at most 160 of them from one second
  failed (5xx, broken off)      400, at most 80 of them from one second
  over the limit                400, at most 80 of them from one second
  refused for other reasons     400, at most 80 of them from one second
Of a second with more, it remembers the first. They hold no tokens, passwords or
queries, and are gone when the sidecar stops.

${FINDS}
Exit codes: 0 if the request is found; 1 if it is not remembered, or no sidecar
runs; 2 for bad usage.`

export const ISSUE = `
The token is printed once, alone on standard output. It cannot be refreshed,
works until --for is over, and ends earlier with postern revoke or when the
password of its name changes. No login evicts it.
  umask 077
  postern issue --for 90d --label prometheus > /etc/prometheus/postern.token
  postern issue --for 2h --name support --label 'ticket 4711'
  postern issue --for 1d --json | jq -r .grant

To replace it, issue one with the same --label, and revoke the old one when the
client has the new one. A week before the end of a token that was issued for
more than two weeks, postern status and the live page tell of it.

${FINDS}
Exit codes: 0 if a token is issued; 1 if the sidecar refuses (a hundred are
issued, the account has no password, password.device) or does not run; 2 for a
bad flag or a name that passwords does not have. docs/issuing.md says more.`

export const REVOKE = `
The connections of a revoked grant are closed. The password does not change.

${FINDS}
It exits with 1 if --grant or --client matches no grant.`

export const RETRY = `
The sidecar keeps the number of requests that the device carries at once, and,
unless that is a fixed number, never passes it again if that broke the device,
also after a restart. This forgets what is known, for a new firmware or if the
device was unplugged. Then one more is tried at a time.

${FINDS}`

export const HASH_PASSWORD = `
The password is one line of standard input, so that no command line shows it:
  postern hash-password > /etc/postern/password      asks for it
  printf '%s' "$SECRET" | postern hash-password

A password with fewer than 8 characters, or one of the usual ones, is refused
unless --weak is given.

On a terminal it says how long a login with this hash takes on this machine: to
know that of a small board, run it there. With --for-board a login takes 7 MiB
in place of 19, for a hash that OWASP calls equivalent.

The exit code is 0 only if the hash is written whole: replace a file by
  postern hash-password > password.new && mv password.new password`

export const PROPOSE = `
It needs no configuration and no running sidecar. The log must be JSON
(log.format), and have all requests (log.access: true):
  journalctl -u postern -o cat | postern propose --name monitor
  postern propose --name monitor --since 7d /var/log/postern.log
  zcat -f /var/log/postern.log* | postern propose --name monitor

It prints allow as YAML, indented for the entry of the name in passwords. After
each path comes how often it was requested, and when last. A path that ends with
a slash opens everything below it; there is no other wildcard. If the log shows
two different numbers, a UUID or 20 different names in a folder, the folder
becomes one entry: /ports/1/config and /ports/2/config become /ports/, with
examples of what was seen. List the paths by hand if that opens too much.
/ would open everything and is never proposed.

Left out, counted and shown: requests that Postern or the device refused (401,
403, 404, 405), or that the log has cut or changed. Then try it before it holds:
set enforce: false in the entry. docs/allow.md has the steps.

Exit codes: 0 if it is printed; 1 if no request belongs in it; 2 for bad usage,
a file that cannot be read, or a log of several names without --name.`

export const INIT = `
On a terminal init asks for what the flags leave open. It tries the device and
the password, writes a commented configuration and prints the next three
commands. It can store a self-signed certificate of the device. Without --config
it fills ${DEFAULT_CONFIG}, if that is as the package has
installed it; otherwise it writes postern.yaml in this folder. It overwrites no
other file. Tokens and certificate are kept beside the configuration; for
${DEFAULT_CONFIG}, in /var/lib/postern.

What the device needs is found and written: reuse: never, parser: tolerant,
another Host, fewer fields. A Basic or Digest login of its own, or a login form,
is offered with what was seen. Clients can log out at /oauth/revoke, unless the
device has that path itself.

It asks how many requests the device takes at once, unless flags name both the
device and its password. Enter: learned, up to 4, which break hardly any device.
more: learned, up to 64, which may break it once. Or type the number: of up to 4
it allows one stream and one WebSocket beside, each on a connection of its own.
  postern init
  postern init --config ${DEFAULT_CONFIG}

Without a terminal it asks nothing:
  printf '%s' "$SECRET" | postern hash-password > password
  postern init --url http://192.0.2.7 --password-file password
  postern init --url https://device --shadow /etc/shadow --user admin
  postern init --url http://192.0.2.7 --password-file password --max-in-flight 2
  postern init --url http://192.0.2.7 --device-login digest --user admin

One of several devices of this host gets /etc/postern/devices/NAME.yaml, ports
that no other one has, and /var/lib/postern/devices/NAME for its state;
postern-device@NAME.service runs it:
  postern init --instance boiler --url http://192.0.2.7 --password-file password

Exit codes: 0 if the configuration is written. Otherwise nothing is written:
2 if a flag is missing or wrong, the file exists, the password cannot be read,
the password is weak (--weak takes it), or you cancel (Ctrl-C); 1 if the device
does not answer as it should (--skip-checks writes nevertheless).

--drop-in asks and writes nothing. It reads a configuration and prints a drop-in
for the unit: systemd then lets the service reach loopback, the device, the DNS
servers and the store in it, and no other machine. Clients need postern.socket,
which is exempt. The end of the drop-in says what it leaves out:
  install -d /etc/systemd/system/postern.service.d
  postern init --drop-in --config ${DEFAULT_CONFIG} \\
    > /etc/systemd/system/postern.service.d/addresses.conf

Its exit codes: 1 if it leaves out something that the configuration uses, such
as a device by name; 2 if nothing is printed, because there is no configuration
or clients would be shut out; otherwise 0.`

export const TRY = `
It gets a token for the password, requests PATH with it, and prints the status,
the fields that count, the body, and the same request for curl. It connects only
to a server with the certificate of listen.tls. So that no command line shows a
secret, it asks for the password, or reads it or a token:
  postern try /api/status
  printf '%s' "$SECRET" | postern try /api/status
  postern try --token-file /etc/prometheus/postern.token /api/status
  postern issue --for 1h | postern try --token-file - /api/status

Standard output has the body, byte for byte unless it is a terminal; all else is
on standard error. With oauth.revocation_path the command ends its login again.
Otherwise the login ends when its tokens expire.

The command finds the sidecar by listen.address, so it needs the same
configuration: name it with --config or --instance, unless it is postern.yaml in
this folder, or ${DEFAULT_CONFIG}. Run it as the sidecar's user or
as root.

Exit codes: 0 for a status below 400; 1 for another one, or without a response;
2 for bad usage, or an unusable file or configuration.`

export const VERIFY = `
The run first says how often it logs in, how many requests it sends and how long
it takes; --dry-run says only that. It sends nothing that changes the device: to
the API only GET, HEAD and OPTIONS, for --path and other spellings of it. It
uses up the rate limits of its address, and tries one wrong and one empty
password: choose a time when that disturbs no one. Ctrl-C ends it, and revokes
its tokens.

The server can be Postern, or any other with this API:
  postern verify https://device.example --password-file password
  postern verify https://localhost:8443 --password-file password \\
    --ca /var/lib/postern/tls/cert.pem

Quickly, without waiting for windows; and the whole, for a program:
  postern verify https://device.example --password-file password --quick
  postern verify https://device.example --password-file password --json

A server with limits of its own, and only some promises:
  postern verify https://device.example --password-file password \\
    --api-limit 120/60 --oauth-limit 10/60
  postern verify https://device.example --password-file password \\
    --only C13,C14,C15,C16

Each promise is kept, broken (with what was sent, what came, what was wanted,
and the clause), or not testable there. docs/verifying.md explains the result,
and docs/promises.md lists the promises.

Exit codes: 0 if no promise is broken; 1 if one is, if the server cannot be
reached or trusted or does not accept the password, or if the run was stopped or
its output cannot be written; 2 for bad usage or an unusable file.`

const { path, flood, revocationPath } = DEFAULTS
const { api, oauth } = DOCUMENTED_LIMITS

/** The flags of `postern verify` and what `--help` says about each, in its order. */
export const VERIFY_FLAGS: readonly (readonly [flag: string, description: string])[] = [
  ['--password-file <file>', 'file with one line: the password of the device, not a hash'],
  ['--path <path>', `path of the API that every request to it asks for (default: ${path})`],
  ['--quick', 'leave out what has to wait for the end of a window, and the floods'],
  ['--only <ids>', 'check only these promises, such as C4,C13'],
  ['--dry-run', 'only say what the run would do; send nothing'],
  ['--json', 'print one JSON document on standard output, and the text on standard error'],
  ['--ca <file>', 'certificate of the server, or of its authority (PEM)'],
  ['--insecure', 'accept any certificate'],
  ['--api-limit <limit>', `the API limit: requests/seconds (default: ${api.requests}/${api.window})`],
  [
    '--oauth-limit <limit>',
    `the limit of the token endpoint, likewise (default: ${oauth.requests}/${oauth.window})`,
  ],
  [
    '--flood <seconds>',
    `length of each flood (${BOUNDS.floodSeconds.join(' to ')}, default: ${flood.seconds})`,
  ],
  [
    '--connections <number>',
    `connections of each flood (${BOUNDS.floodConnections.join(' to ')}, default: ${flood.connections})`,
  ],
  [
    '--revocation-path <path>',
    `where the run tries to revoke its tokens at the end, or off (default: ${revocationPath})`,
  ],
]
