import type { Promised } from '../promised.ts'

/** What the limits, the files and the records withstand. */
export const OPERATION = {
  H68: {
    sentence: 'A burst around the boundary of a window never passes more than the limit in one window.',
    reason: 'race between check and count',
  },
  H69: {
    sentence: 'Address spraying, IPv6 rotation and spoofed forwarding fields give a client no second window.',
    reason: 'rate limit bypass; RFC 7239 §8.1',
    check:
      'asks in both used-up windows with spoofed forwarding fields and a query, and at the API also with a second slash and with the access token from before a refresh',
  },
  H70: {
    sentence: 'A wall clock that jumps locks out no client and opens no window.',
    reason: 'devices that get their time late, by NTP',
  },
  H71: {
    sentence: 'Every token that a client has received works after a SIGKILL.',
    reason: 'crash or OOM kill; a power cut may lose the last second',
  },
  H72: {
    sentence:
      'A token file that is damaged, of a newer version or of another program is set aside under a dated name, the log says so, and Postern starts without tokens. One that cannot be opened at the start is set aside as soon as it can be, and never overwritten.',
    reason:
      'power loss and worn flash: SQLite opens a garbage file and fails at its first query; a file system that is read-only for a moment',
  },
  H73: {
    sentence: 'With a full, read-only or locked disk Postern serves from memory, and log and metrics say so.',
    reason: 'full flash; another program that locks the file',
  },
  H258: {
    sentence:
      'A second sidecar on the same `state_dir` ends at its start with exit code 2 and names the one that runs: process, host and start. It does so wherever the tokens are kept, and while the disk of the first fails.',
    reason:
      'two in one folder would replace the certificate and tokens of each other; a container that was started twice',
  },
  H262: {
    sentence:
      'A log that cannot be written, on a full disk, ends nothing and is no bug: up to 2 MiB of lines wait and are written when there is room, and then a line says why they came late.',
    reason: 'a file on the disk that others fill; a message that names the wrong cause',
  },
  H74: {
    sentence: 'Files of the state folder are for their owner alone (0600), under any umask.',
    reason: 'other users of the machine; CWE-732',
  },
  H75: {
    sentence: 'The last good password holds while its file is replaced, half written, emptied or removed.',
    reason: 'editors and secret mounts; never open, never silently shut',
  },
  H234: {
    sentence:
      'In an htpasswd or shadow file that was read whole, an account that is locked, has expired or is gone has no password: its logins are refused and its tokens end, also by time alone and over a restart, and unlocking revives none. Of several names only that one ends. In a fleet it holds when the shared store did not answer meanwhile. The log, an alarm and `check` say so.',
    reason: 'an operator who locks an account expects that nobody uses it any more',
  },
  H76: {
    sentence:
      'A bad configuration or certificate changes nothing at a reload, and the message names the fault. Then `systemctl reload` fails, as do `systemctl start` and the installation of the package if the sidecar ends at its start.',
    reason: 'operator mistakes on a running plant; scripts trust the exit code',
  },
  H77: {
    sentence:
      'Exhausted file descriptors cost the newest clients their connection, and are over when some are free.',
    reason: 'EMFILE; connection floods',
  },
  H78: {
    sentence: 'A wrong URL of a shared store is refused at the start.',
    reason: 'an operator mistake; a 401 for a token that could not be looked up would be wrong',
  },
  H79: {
    sentence: 'The number of metric series does not depend on what clients send.',
    reason: 'label cardinality; memory exhaustion',
  },
  H80: {
    sentence: 'A scraper that hangs changes nothing for clients or for another scraper.',
    reason: 'slow read on the admin address',
  },
  H81: {
    sentence:
      'Passwords, tokens and cookies appear in no log, metric, response, state file or process listing.',
    reason: 'CWE-532; canaries in every secret',
  },
  H82: {
    sentence: 'Each request makes one bounded line of JSON in the log, for any bytes in it.',
    reason: 'log injection (CWE-117) and terminal escapes',
  },
  H110: {
    sentence:
      'A client that trusts `tls/cert.pem` connects by every name and address of the machine, or by those of `listen.tls.names`.',
    reason: 'otherwise operators switch verification off (RFC 9525)',
  },
  H111: {
    sentence:
      'A self-signed certificate with other names has the same key and CA: clients that trust the file, or its key, go on.',
    reason: 'a new address must not lock out clients',
  },
  H112: {
    sentence:
      'A new address gets into the self-signed certificate while it is served: within seconds when a client connects to it, otherwise within about a minute. One that is down for a moment changes nothing.',
    reason: 'DHCP; interfaces that flap must not make certificates',
  },
  H113: {
    sentence:
      'Postern renews a self-signed certificate in its last 30 days with the same key, also one that an earlier version made.',
    reason: 'an unattended device must not become unreachable',
  },
  H114: {
    sentence:
      'If the self-signed certificate cannot be stored, it is served from memory, with one line in the log.',
    reason: 'a read-only state folder; disk full',
  },
  H285: {
    sentence:
      'A self-signed certificate that could not be stored is stored when there is room, and the log says so.',
    reason: 'disk full: an operator who gives clients the new file would give them the old one',
  },
  H117: {
    sentence:
      'The npm package is installed without a warning; its command runs, and its library starts and stops a sidecar.',
    reason: 'decision: Node strips no types below node_modules, so the package holds JavaScript',
  },
  H118: {
    sentence:
      'A sidecar within another program that fails to start, or is stopped, leaves nothing behind in it.',
    reason: 'decision: health checks, locks and timers would go on until the program ends',
  },
  H119: {
    sentence:
      'An upgrade of the Debian package keeps the tokens, a configuration that the operator edited, and the port of the socket unit open.',
    reason: 'decision: an upgrade must not log clients out',
  },
  H120: {
    sentence: 'A purge of the Debian package leaves no file, no user and no unit behind.',
    reason: 'Debian Policy 6.8; what is left would hold secrets',
  },
  H121: {
    sentence:
      '`postern healthy` tells by its exit code whether the sidecar of the configuration responds, within 3 s. What any command prints is written whole, or its exit code says that it is not: 141, without a word, if the reader has left; 1, with the reason, for any other failure, such as a full disk.',
    reason:
      'decision: a health check in an image without a shell; a status that is cut at 64 KiB, or an empty password file, must not look like a success',
  },
  H122: {
    sentence:
      'The container image holds the executable and the libraries that it loads, no shell, and serves as an unprivileged user on a read-only root.',
    reason: 'decision: what is not in the image needs no update and helps no intruder',
  },
  H123: {
    sentence:
      '`compose.yaml` starts a device that only Postern reaches, Postern, and a Prometheus that watches it.',
    reason: 'decision: an example that exposes the device would be copied',
  },
  H124: {
    sentence:
      'The Kubernetes manifests are valid by the published API, and run Postern as a native sidecar under the restricted pod security standard.',
    reason: 'Kubernetes ignores or refuses a misspelt field only in the cluster',
  },
  H125: {
    sentence:
      'Under a flood past a limit, exactly the limit passes and every other request gets its 429; a client within its limits is served beside it.',
    reason: 'request flood; the release check of devices with this API',
    check:
      'floods `/oauth/token` and then the API, accounts for every response, and meanwhile uses the other of the two within its limit',
  },
  H102: {
    sentence: 'No revocation is undone by a crash or a restart, unless the file system is read-only.',
    reason: 'a revoked token in the token file would be valid again; see C8',
  },
  H141: {
    sentence:
      'With `listen.reuse_port` several sidecars of one machine share an address: each gets a part of the connections, and those of one that stops or dies go to the others; one that drains finishes what it has accepted.',
    reason: 'several cores; a restart without an outage',
  },
  H142: {
    sentence:
      '`postern@.service` runs several sidecars on one address as hardened as one, each with a state folder and an admin address of its own, and an upgrade of the package restarts them one after the other.',
    reason:
      'decision: the metrics of each must be told apart, and an upgrade of all at once would be an outage',
  },
  H221: {
    sentence:
      'No client keeps the refusals of another one out of the log: each has ten lines for a kind in ten seconds. Sprayed addresses get at most 60 lines of a kind and 200 in all, and one line then says how many refusals had none, of how many clients, and of which most.',
    reason: 'a guess from a second address must not vanish in a sum; a flood must not fill a disk',
  },
  H222: {
    sentence: 'A revocation by an operator is a line of the log with the ids of the grants, in every store.',
    reason: 'an operator has to know afterwards who was logged out',
  },
  H223: {
    sentence:
      'A device that goes away and comes back is a line each, also without an access log, and on the live page; at most ten lines a minute.',
    reason: 'an outage has to be found in the log when it is over; a device that flaps must not fill a disk',
  },
  H224: {
    sentence:
      '`check` and the log warn of each setting that opens a door: a public `/`, trusted proxies that are a part of the internet in whatever ranges, no wait after wrong passwords, tokens of years, any certificate of the device or the shared store. docs/hardening.md lists all of them, and is written from them.',
    reason: 'an installation that works is not looked at again; a list by hand goes out of date',
  },
  H225: {
    sentence:
      '`check` and the log warn of a password in plain text, of a short or usual one, of a hash that is cheap to guess, and of a text that only looks like a hash, in every file that clients or viewers log in by.',
    reason: 'offline guessing after a leaked backup; a bare MD5 would be the password itself',
  },
  H226: {
    sentence:
      '`hash-password` and `init` refuse a password of fewer than 8 characters or one of the usual ones, unless told `--weak`.',
    reason: 'online guessing; NIST SP 800-63B §3.1.1.2',
  },
  H227: {
    sentence: '`hash-password` and `check` say when a password begins or ends with a blank.',
    reason: 'decision: a blank that nobody sees must not lock out every client',
  },
  H228: {
    sentence:
      'A missing blank behind a colon, a quote that is not closed and a key that is indented too deeply are named where they were made, and no value is quoted.',
    reason: 'the parser stops lines later; a value may be a secret',
  },
  H229: {
    sentence:
      'A reload logs each file with a password that a start would need and could not use, as long as that is so.',
    reason: 'a sidecar that runs on hides that its next start will fail',
  },
  H230: {
    sentence: '`init` prints the commands as they are typed where it runs.',
    reason: 'decision: commands are to be copied',
  },
  H271: {
    sentence:
      'After a step of the wall clock, what was issued in this run keeps its age, also on disk, and what was restored is as old as the file says. A clock that starts behind the last known time gives no token more than its life, however often.',
    reason: 'boards without a battery start in 1970 and get their time late, by NTP',
  },
  H272: {
    sentence:
      'The first response that only the tolerant rules read is told: its request, its fault, and the bytes around it, in the log, by `explain` and `status`, and on the page. No value that may be a secret is among them.',
    reason: 'nobody can mend a page of the firmware that no line names; CWE-532',
  },
  H273: {
    sentence:
      '`check` requests the pages that it is given as a client would, and says which the device answers with an error, with malformed HTTP, or not at all.',
    reason: 'a start page that works hides an API that does not',
  },
  H280: {
    sentence:
      'A service that listens may neither start programs nor call native code. The one native function that it has taken before that is `malloc_trim`.',
    reason: 'a fault in a package must not become a program of an attacker',
  },
  H292: {
    sentence:
      '`postern issue` prints one access token, once, for a client that cannot log in: with the `allow` of its name, without a refresh token, evicted by no login, shown by its label everywhere, and the token itself nowhere else. One that cannot be printed is revoked.',
    reason:
      'many clients can send one fixed field only, and must never see the password; CWE-532; a token that nobody has must not end the alarm for its predecessor',
  },
  H293: {
    sentence:
      '`postern issue` refuses what nothing could end, more than `tokens.issued` at once, and flags that are wrong. It says why, and the exit code tells a mistake (2) from a refusal (1).',
    reason: 'C8; a bound without a name of what to revoke would be an outage; CWE-117 for labels',
  },
  H294: {
    sentence:
      'An issued token survives a restart with its label and its own end, whatever the clock does, and ends with its password as all tokens do: while Postern runs, by a reload, and over a restart.',
    reason: 'C7, C8: a token of a year must not outlive the password that its owner has changed',
  },
  H295: {
    sentence:
      'A token that was issued for more than two weeks and ends within one is an alarm on the page, in `status` and in the rules, until one with the same label is issued that lives longer.',
    reason: 'a probe that gets 401 one night tells nobody why',
  },
  H296: {
    sentence:
      'In a fleet an issued token works at every sidecar, also beyond `access_lifetime`, is revoked at all, ends with its password at all, and counts for one bound.',
    reason: 'a load balancer sends the client to any of them',
  },
  H312: {
    sentence:
      '`log.access: changes` logs the requests that may change something, with name, grant and client: not GET, HEAD and OPTIONS, unless they have a body, a field of theirs names another method or target, or they open a WebSocket. No flood or failure keeps one that the device got out of the log.',
    reason: 'who changed what is asked after an incident; a line for each read hides it',
  },
  H313: {
    sentence:
      'Of a query the log has the parameters in `log.query` alone, in any encoding of their names. A name that says that it holds a secret is refused.',
    reason: 'many devices do what a parameter says; CWE-532',
  },
  H314: {
    sentence:
      'Each line that journald reads has its severity, also the reason why a command failed. No other line has one.',
    reason: '`journalctl -p warning` is where an operator looks first; systemd',
  },
  H320: {
    sentence:
      'With `admin.tls: on` the admin listener speaks TLS only, with the certificate of `listen.tls`, and again with each new one. The cookie of the live page is then `Secure`, and a page that came over cleartext is another origin. Switching it takes a restart.',
    reason: 'decision: a page that is opened over the network has a password, and shows addresses',
  },
  H321: {
    sentence:
      'With `admin.tls: on`, `postern healthy` sends its request only to a server with the certificate that the sidecar is configured with, also if that has expired.',
    reason:
      'decision: another program at the port must not look healthy, and an expired certificate is served',
  },
  H327: {
    sentence:
      'The former spelling of `upstream.auth`, with the kind as a key, means the same as the present one, from the file, the environment and flags, for every service. One warning has the line to write, without a secret; both spellings at once are an error that names both.',
    reason: 'decision: an upgrade must not log the sidecar out of its device',
  },
  H322: {
    sentence:
      '`--instance NAME` is one of several devices of a host, for all commands and for `postern-device@NAME` alike: `/etc/postern/devices/NAME.yaml`, with a state folder of its own whatever that file says. A name is a label of a host name; an unknown one names those that exist.',
    reason: 'a command that finds another device than the service revokes the wrong tokens; CWE-22',
  },
  H323: {
    sentence:
      '`postern init --instance` writes ports that no other configuration of the host has and no program uses, also when several run at once and when another configuration has a mistake. It overwrites nothing.',
    reason: 'the second of two sidecars with one port does not start, at the next boot maybe the first',
  },
  H324: {
    sentence:
      '`check` names the file of another sidecar of this host that has an address of this one, also if a wildcard or `listen.reuse_port` lets one stand for the other.',
    reason: 'clients of one device would reach another one',
  },
  H325: {
    sentence:
      '`postern-device@.service` is as hardened as `postern.service`, and each device has its own state, addresses and share of memory. An upgrade of the package restarts those that run, one after the other, and leaves the others alone. One that is broken does not concern the rest: if it does not start again, they serve on with the old program.',
    reason: 'decision: a host in front of fifty devices must not lose them all for one',
  },
  H326: {
    sentence:
      'Each alert about a sidecar says by the label `instance` which one it is, and the dashboard has a row for each, which opens it for that one alone. A target can have the name of a device there.',
    reason: 'an alert about one of fifty addresses names no device',
  },
  H338: {
    sentence:
      'Until 2.0 no configuration key, flag, `postern_` metric, label, field of an access line, exit code, field of `--json`, address of the admin listener or request of the control socket is renamed or removed.',
    reason: 'decision: an upgrade breaks no script, dashboard or alert; semver 2.0.0 §8',
  },
  H331: {
    sentence:
      'The printed commands verify a signed release. They fail if any file, the list or the signature was changed, for another key and for another purpose, and show the version of an older release.',
    reason: 'a list of digests beside the files vouches for nothing: who changes a file changes the list',
  },
  H332: {
    sentence: 'A release that was made without a key says that it is unsigned.',
    reason: 'a vendor must not publish it by mistake',
  },
  H333: {
    sentence:
      'The provenance of a release names the commit, the lock files, the runtimes, the builder, the parameters and the digest of every file, and the signed list has its digest.',
    reason: 'in-toto Statement v1, SLSA provenance v1',
  },
  H334: {
    sentence:
      'A release says who answers for it, in `VENDOR`, the bill of materials, the provenance and the Debian package. Without a vendor each says that whoever ran the build made it.',
    reason: 'who finds a weakness must know where to report it',
  },
  H335: {
    sentence:
      'The program `apt` installs the package from the signed repository, and refuses it if another key signed the list, or if the list or the package was changed.',
    reason: 'apt-secure(8)',
  },
  H336: {
    sentence:
      "With the Node.js project's archives and list, a release is made only of the same program, byte for byte; `VERSION` says whether it was compared.",
    reason: 'the npm packages with Node.js are not published by the Node.js project',
  },
  H337: {
    sentence:
      'The bill of materials names Node.js and each library in it by a purl, and by a CPE where the dictionary of NVD has one.',
    reason: 'a scanner finds advisories by these names',
  },
  H344: {
    sentence:
      'Under the units, no program can be started from a place that the service can write, and the kernel refuses io_uring, memfd_create and other calls that the process does not use.',
    reason:
      'who runs code in the process must not bring a program along; io_uring passes by a filter of system calls',
  },
  H345: {
    sentence:
      '`postern init --drop-in` prints a drop-in by which systemd lets the service exchange packets with loopback, the device, the DNS servers and the store, and with no other machine. Clients that connect to `postern.socket` are served from every address.',
    reason: 'a sidecar that is taken over must not reach other machines; systemd.resource-control(5)',
  },
  H346: {
    sentence:
      'The drop-in says what it leaves out. If the configuration uses that, the exit code is 1 and standard error names it; where clients would be shut out, the exit code is 2 and nothing is printed.',
    reason: 'an operator must not find it out from an outage',
  },
  H354: {
    sentence:
      'Each line of the log in JSON has its time in UTC (RFC 3339), its severity and its event; that of a request also its id, client, login, method, path, protocol, kind of endpoint, status, refusal, duration and sizes.',
    reason: 'when, where, who and what are asked after an incident',
  },
  H350: {
    sentence:
      'Each requirement of docs/evidence.md says what it is met by: promises with tests, configuration keys, a reason where the status is no better, the task of the vendor. Page, JSON and program are written from the same entries, and none of them claims conformity.',
    reason: 'a table that is written by hand says more than the program does, sooner or later',
  },
  H351: {
    sentence:
      '`check --evidence` says for each configuration key that a requirement depends on whether the present value is the one that is wanted, and what another one costs. It contacts nobody, shows no secret, and never says more than docs/evidence.md.',
    reason: 'a default or a switch of the operator decides whether a clause is met in this installation',
  },
  H352: {
    sentence:
      '`npm test -- --results FILE` writes a test run down, and a release puts its figures beside its programs: the commit, what passed, what was skipped and why. It takes no run of another commit, and a promise without a test that passed is not shown.',
    reason: 'a reader of the evidence cannot run the tests; a skipped test proves nothing',
  },
  H347: {
    sentence:
      "The labels of the container image say version, commit, the commit's time, licence and vendor, without a build argument; its base is taken by digest if one is given.",
    reason: 'an operator must be able to tell what runs, and a tag is another image tomorrow',
  },
  H348: {
    sentence:
      "The container image has the bill of materials of the release at the place that its label names, and Debian's records of its libraries where scanners look.",
    reason: 'an image without a package manager shows a scanner nothing of what is in it',
  },
  H349: {
    sentence:
      'A scanner that gets the bill of materials finds an advisory about a package that ships or about a package in Node.js, and none about packages for development.',
    reason:
      'a list that a scanner reads only in part hides what is in it: Trivy skips components within components',
  },
  H339: {
    sentence:
      'An upgrade from 0.1.0 logs no client out and refuses no key, while clients poll: tokens, refresh tokens and certificate stay valid. With a shared store and two processes no request fails. A browser logs in again, because its session is in memory.',
    reason: 'decision: an upgrade must not log clients out',
  },
  H340: {
    sentence:
      '`postern check` says what behaves differently from the version of the token file in the state folder, or from that of `--since`, for the keys of this configuration; and the line to write for each key in its former spelling.',
    reason: 'decision: a default that changes must not be found out in production',
  },
  H341: {
    sentence:
      'Back to 0.1.0, the token file is set aside with one line in the log, and everyone logs in again. It is not lost. With a shared store nobody is logged out.',
    reason: 'an upgrade that cannot be undone is not made',
  },
  H342: {
    sentence:
      'A token file that an earlier version has set aside is named by the next start of the later one and by `postern check`, with the command that takes its tokens back beside those issued since. No token comes back without that command, or for another password, or twice.',
    reason: 'nobody knows what was meant to be revoked while the earlier version ran',
  },
  H343: {
    sentence:
      'A power cut at any step of an upgrade of the package, or of the way back, leaves a service that starts, with its tokens.',
    reason: 'a device is switched off without asking',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
