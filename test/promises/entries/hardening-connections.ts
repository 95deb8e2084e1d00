import type { Promised } from '../promised.ts'

/** Attacks with connections: HTTP/2 frames, clients that are slow, many or gone, and upgrades. */
export const CONNECTIONS = {
  H37: {
    sentence:
      'A client that opens HTTP/2 streams only to have them reset loses its session early, and opens no connection to the device.',
    reason: 'rapid reset (CVE-2023-44487), MadeYouReset (CVE-2025-8671)',
  },
  H38: {
    sentence: 'Floods of HTTP/2 control, empty and CONTINUATION frames close the connection.',
    reason: 'CVE-2019-9512, -9513, -9515, -9518; CVE-2024-27983',
  },
  H39: {
    sentence: 'The header limit holds in HTTP/2 from the first request on.',
    reason: "Node applies its own limit only after the client's SETTINGS acknowledgement",
  },
  H40: {
    sentence: 'HTTP/2 fields that HTTP does not allow are refused, or never leave Postern.',
    reason: 'RFC 9113 §8.2.1 and §10.3; header injection by downgrade to HTTP/1',
  },
  H41: {
    sentence: 'An HTTP/2 request names one authority: `:authority` and `host` agree, or it is refused.',
    reason: 'RFC 9113 §8.3.1',
  },
  H42: {
    sentence:
      'HTTP/2 connections without a request, and header blocks that never end, are closed at a deadline.',
    reason: 'slowloris in HTTP/2, where Node has no deadline',
  },
  H43: {
    sentence: 'Each HTTP/2 stream has deadlines of its own, also while its connection is busy.',
    reason: 'slow read and slow POST; CVE-2019-9511 and -9517',
  },
  H44: {
    sentence: 'Response fields that HTTP/2 forbids are removed.',
    reason: 'RFC 9113 §8.2.2; the compatibility API of Node throws',
  },
  H45: {
    sentence: 'A device status that HTTP/2 cannot carry fails that request alone.',
    reason: 'RFC 9113 §8.3.2; RFC 9110 §15',
  },
  H58: {
    sentence:
      'Clients that leave in the middle of a transfer abort their device requests within a second and leave no socket behind.',
    reason: 'resource exhaustion by abandoned requests',
  },
  H59: {
    sentence: 'A client that closes its sending side still gets its whole response.',
    reason: 'RFC 9112 §9.6; simple scripts and `nc` do so',
  },
  H60: {
    sentence: 'An upgrade without a token is 401, and the bytes after it are discarded.',
    reason: 'a tunnel would carry anything past the gate',
  },
  H61: {
    sentence: 'An upgrade with a body is refused.',
    reason: 'where the body ends and the tunnel begins would be uncertain',
  },
  H62: {
    sentence: 'An upgrade meets the same path and field rules as a request.',
    reason: 'proxies that forward upgrades by another code path',
  },
  H63: {
    sentence: 'A client that leaves or floods before the 101 costs no device connection and no memory.',
    reason: 'resource exhaustion before the tunnel stands',
  },
  H64: {
    sentence: 'A device that does not answer an upgrade is given up at the deadline.',
    reason: 'RFC 9110 §15.6.5; http-proxy-3 waits without end',
  },
  H65: {
    sentence:
      'The response to an upgrade is read by the rules of every response, the tolerant ones too: a refusal is relayed, a malformed one is 502, and nothing hangs.',
    reason: 'http-proxy-3 leaves the client without a response',
  },
  H66: {
    sentence: 'Only a well-formed WebSocket handshake opens a tunnel.',
    reason: 'h2c smuggling; RFC 6455 §4.1; RFC 9110 §7.8',
  },
  H67: {
    sentence: 'A password change closes open tunnels within a second, on both sides.',
    reason: 'a revoked client would keep its access; see C8',
  },
  H206: {
    sentence:
      'A tunnel or stream ends within 5 s of the end of its grant, whatever ends that: its last token has expired (the refresh token counts), eviction, revocation, reuse of a refresh token, a new password, a smaller `tokens.capacity`; in memory, with a file and in a fleet. The expiry of an access token ends nothing. A stream is one by its type, or a response without a length that outlasts `upstream.stream_after` and is no file. Expiry and eviction let uploads and downloads go on.',
    reason: 'C8: a client that has no valid token any more would go on to read and to send',
  },
  H207: {
    sentence:
      'A revocation and a new password also end uploads and downloads whose grant has expired or was evicted. `status` lists these, and `revoke` counts them: each those of its own sidecar, and in a fleet `revoke` says so.',
    reason: 'C8: the operator ends everything, and has to see what there is',
  },
  H208: {
    sentence:
      'A request in flight is a use of its grant: a login evicts the grant of a quiet stream only when there is no other. In a fleet, the sidecars tell the store of their open streams.',
    reason: 'a live view that is only watched would be the first to end',
  },
  H94: {
    sentence:
      'An HTTP/2 method or pseudo-header that holds a line break or a blank is refused before the device.',
    reason: 'request smuggling by downgrade from HTTP/2 to HTTP/1; RFC 9113 §10.3',
  },
  H97: {
    sentence: 'A connection leaves nothing behind: no socket, timer, stream or memory, however it ended.',
    reason: 'slow leaks that end a process after weeks',
  },
  H98: {
    sentence:
      'Lingering connections count against the caps, share the event loop fairly and do not delay a stop.',
    reason: 'a refused upload would be a cheap way to hold connections',
  },
  H99: {
    sentence:
      'Slow clients and many at once leave a client of another address served, and all of them end by deadline. An upload takes its place at the device with its first bytes. While others wait, one below `upstream.min_upload_rate` loses it within half of `queue.timeout`; time in which the device holds it up does not count.',
    reason: 'slowloris, slow read, dripped uploads (R.U.D.Y.) and connection floods together',
  },
  H181: {
    sentence:
      'With `limits.wrong_passwords: slow`, the fifth wrong password of a client waits 0.25 s before it is verified, each further one twice as long, up to 30 s; ten quiet minutes or a right password (of a name without `allow`) end that. Many wrong passwords of all clients slow those without a live grant (of such a name), too. A right password always works, later: past the body deadline 429 says when. Clients behind one address share its turns.',
    reason: 'guessing by one address and by many; a lock-out would be an attack on the operator',
  },
  H182: {
    sentence:
      'Addresses outside of `listen.allow`, or in `listen.deny`, are closed before TLS, counted and logged; a client that a trusted proxy names gets 400, or 403 in `http` mode. `admin.allow` and `admin.deny` do the same for operators, and a reload closes their open connections.',
    reason: 'a service on a network that more can reach than should',
  },
  H244: {
    sentence:
      'What clients make the process hold is on one account, in bytes, by client and by kind: connections, requests, bodies, responses that nobody reads, tunnels, hashes, viewers of the page and log lines. What Node hides costs at most the constant that it is charged for.',
    reason: 'every cap held, and their product ended the process',
  },
  H245: {
    sentence:
      'As the account fills, Postern sheds in stages, which are logged and counted: fewer streams for new HTTP/2 connections, own answers that nobody reads for a second, connections without work, then the holdings of clients above the fair share, the largest first and requests at the device last. A client below it loses nothing; behind a trusted proxy the clients are judged, not the proxy.',
    reason: 'one client could take the memory of all; Envoy calls it the overload manager',
  },
  H246: {
    sentence:
      'At the end clients with a live grant share first, and a client that holds nothing may still connect to log in. A revoked grant gives no precedence.',
    reason: 'a flood from many addresses would otherwise lock out those whom the device is for',
  },
  H247: {
    sentence:
      'Once a second the memory of the process and of its cgroups is looked at. If it is fuller than the account says, shares shrink until it fits.',
    reason: 'constants are wrong for some request, some day',
  },
  H248: {
    sentence:
      '`listen.memory: auto` is a share of the least of what the machine, every cgroup above the process and the heap of V8 leave it, and at most 512 MiB or what two of the configured hashes need. `check`, the start and `status` say how much, and which keys cannot be used up under it.',
    reason: 'a number that suits one machine lets another be killed',
  },
  H249: {
    sentence:
      'A stream for which there is no memory is refused unread (`REFUSED_STREAM`), reaches neither window nor device, and may be repeated; a request over HTTP/1 gets `overloaded`; a connection closes before TLS.',
    reason: 'RFC 9113 §8.7; C13, C16',
  },
  H250: {
    sentence:
      'Under each flood of C26 the process stays within its memory, `/healthz` answers, and a client with a token at another address loses no request.',
    reason: 'five kills within a minute make systemd give up, and each empties the windows',
  },
  H251: {
    sentence:
      'A hash that takes more memory than clients may hold is refused at the start, and two are verified at once only if both fit.',
    reason: 'a login would end the process on a small machine',
  },
  H252: {
    sentence:
      'Log lines that nobody takes are dropped past 2 MiB, and a line tells how many when the reader is back.',
    reason: 'a log on a pipe that nobody reads grew without bound',
  },
  H115: {
    sentence:
      'Plain HTTP on the TLS port gets one 400 that names https, and nothing of the request is kept or repeated.',
    reason:
      'a closed connection does not tell a user what is wrong; a repeated Host would be a reflected name',
  },
  H116: {
    sentence:
      'A TLS handshake ends by `listen.handshake_timeout`, counted from the connection. Plain HTTP gets its 400 and lingers as after any last response. Both count against the caps.',
    reason: 'slowloris before TLS begins',
  },
  H211: {
    sentence:
      'Counting a request takes as long with a hundred thousand windows that close one after the other as with a thousand.',
    reason:
      'a table that gets slower with each window that closes lets sprayed addresses use up the processor',
  },
  H212: {
    sentence:
      'With `limits.wrong_passwords: slow`, waits follow verdicts: of attempts of a client at the same time, four are verified at once, the others as the verdicts of those allow. Thirty right ones pass as fast as they hash; of thirty wrong ones at most eight are verified within 1.5 s. A right password begins those behind it. A client has at most 64 attempts that wait, and one that leaves passes its turn on.',
    reason: 'thirty guesses in one turn of HTTP/2; the tabs of a browser that log in together',
  },
  H213: {
    sentence:
      'However many wrong passwords one client sends, at most ten count among those of all that slow the others.',
    reason: 'a script with an old password beside others with the right one must not slow everyone',
  },
  H214: {
    sentence:
      'Clients that ask for the same long response at the same time each get all of it, also those that read slowly: past 128 KiB nothing is shared.',
    reason: 'who reads as fast as the device sends must not be cut for a turn of the event loop',
  },
  H215: {
    sentence: 'A client under `listen.deny` that a trusted proxy names counts in no window.',
    reason: 'who may not connect must not use up what all clients share',
  },
  H216: {
    sentence:
      'With `limits.api.per: device` or `name`, a request with the session of a browser counts in that window, too; one that its own window refuses does not.',
    reason: 'a program with a cookie must not pass a limit that protects the device',
  },
  H217: {
    sentence:
      'The listener agrees to TLS 1.3, and of TLS 1.2 to ECDHE with AEAD only, whatever the certificate. With a client that has it, the key exchange is X25519MLKEM768.',
    reason:
      'RFC 9113 §9.2.2 and appendix A; a stolen key or a quantum computer would open recordings of earlier connections',
  },
  H268: {
    sentence:
      'When `listen.max_connections` is reached, a client with few connections gets the place of one of the client with most, without work and the oldest first, never one with a request at the device. Among clients with equally few, one that holds nothing gets the place of a connection that is a second old and without work, if its client has no live grant. A trusted proxy loses none.',
    reason: 'four addresses, each within its own cap, would fill all places and refuse everyone else',
  },
  H269: {
    sentence:
      'With the memory that `MemoryMax=512M` gives clients, a page of 100 requests at once over HTTP/2, 250 connections of one address, and 1,000 quiet connections lose nothing.',
    reason: 'bounds that honest traffic meets are turned off',
  },
  H270: {
    sentence:
      'Half a minute after a flood the process holds at most 40 MiB more than idle: what the C library keeps free goes back to the system, too.',
    reason: 'a machine with other programs on it; glibc keeps each free page below one in use',
  },
  H282: {
    sentence:
      'The memory of a piece of a response is used again, or freed, only when its bytes were sent or dropped, over each version of HTTP.',
    reason:
      'a client would get the bytes of others: Node 26 calls back for the last piece of an HTTP/2 response before it reads it',
  },
  H283: {
    sentence:
      'Eight buffers of 512 KiB for large responses serve all clients, over HTTP/1 and HTTP/2. They come back when their responses have ended or their connections have broken; without one, a response is read in pieces of 64 KiB.',
    reason: 'slow readers hold what they do not read',
  },
  H253: {
    sentence:
      'The device gets a WebSocket handshake in the order and letter case of its client, 8-bit values and target byte for byte. Repeated fields stand together, and several cookies become one field.',
    reason: 'firmware that knows a field only as its browsers write it; RFC 6265 §5.4',
  },
  H254: {
    sentence:
      'A handshake and its tunnel go through `http-proxy-3`, by its public events, over a connection that Postern has opened.',
    reason: 'a new version of the package must not be bypassed or change in silence',
  },
  H255: {
    sentence:
      'Until the device has accepted a handshake, nothing that `http-proxy-3` does reaches the client, and nothing of it is left at any end.',
    reason: 'the package relays a refusal with every field as the device sent it; slow leaks',
  },
  H256: {
    sentence: 'The fields of a 101 reach the client byte for byte, in their letter case, repeats one by one.',
    reason: 'RFC 9110 §5.5; http-proxy-3 writes 8-bit values as UTF-8',
  },
  H257: {
    sentence: 'The last bytes of a side that ends a tunnel reach a side that reads them late.',
    reason: 'a truncated message looks like a fault of the device',
  },
  H357: {
    sentence:
      'After the process stood still (a busy machine, or a suspended one), what a client, the device or the shared store sent in time counts as in time: heads, bodies, handshakes, requests on kept connections, responses, replies, bytes of a tunnel.',
    reason:
      'the timers of Node fire before it reads what has arrived; a small board stands still for seconds',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
