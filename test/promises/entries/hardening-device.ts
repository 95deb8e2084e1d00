import type { Promised } from '../promised.ts'

/** Faults of the device, which must stay its own. Statuses are those of `status_codes: http`. */
export const DEVICE = {
  H46: {
    sentence:
      'A device that refuses connections is 502, and one that does not answer the handshake 504 at the deadline. If it worked within the last second, it is tried again with growing pauses within `connect_timeout`; the pause that worked is kept before the next connections.',
    reason: 'RFC 9110 §15.6.3 and §15.6.5',
  },
  H47: {
    sentence:
      'A device that closes before the first byte of its response is asked again only for a repeatable request: once after a reused connection, and once after a new one, if the device worked within the last second and keeps a further connection open, so three times at most.',
    reason: 'RFC 9112 §9.3.1: a POST could run twice, and a GET that crashes firmware many times',
  },
  H48: {
    sentence:
      'A device that closes idle connections early costs no client an error: Postern learns its keep-alive time.',
    reason: 'keep-alive race; RFC 9112 §9.5',
  },
  H49: {
    sentence:
      'A body that ends early is a broken transfer at the client, never a short one that looks whole.',
    reason: 'RFC 9112 §8; a reset is not the end of a body',
  },
  H50: {
    sentence:
      'Responses without a body (HEAD, 204, 304) end with their head, even if they announce a length.',
    reason: 'RFC 9112 §6.3',
  },
  H51: {
    sentence: 'A response that is not HTTP is 502, or read by the tolerant rules where they are on.',
    reason: 'RFC 9112 §4; old firmware',
  },
  H52: {
    sentence: 'A response with two lengths is 502. The tolerant rules take two that are equal.',
    reason: 'response smuggling; RFC 9112 §6.3',
  },
  H53: {
    sentence: 'A response with a transfer coding other than `chunked` is 502.',
    reason: 'RFC 9112 §6.1: it was not asked for',
  },
  H54: {
    sentence: 'Interim responses that were not asked for are skipped, up to a limit. An unasked 101 is 502.',
    reason: 'RFC 9110 §15.2; endless 103s hold a request without end',
  },
  H55: {
    sentence:
      'A device that never answers, drips its head or stalls in its body meets a deadline: 504 or a cut transfer.',
    reason: 'RFC 9110 §15.6.5; a stuck device would hold every place',
  },
  H56: {
    sentence: 'A response that the device sends before it has read the upload reaches the client.',
    reason: 'RFC 9112 §9.6: a reset can destroy it in flight',
  },
  H57: {
    sentence:
      'HTTP/1.0 responses, `Connection: close`, tabs around values and heads up to 64 KiB are read right.',
    reason: 'RFC 9112 §9.3; RFC 9110 §5.6.3; old firmware',
  },
  H100: {
    sentence:
      'A connection to the device is used again only when its last exchange ended where both sides must agree, and never after a stray byte.',
    reason: 'response queue poisoning: a client gets the response of another',
  },
  H101: {
    sentence: 'No value can add a line to a message that Postern writes, to the device or to a client.',
    reason: 'request and response splitting; CWE-93',
  },
  H166: {
    sentence:
      '`upstream.tls` is in force for the connections to that service alone: old versions, weak keys and ciphers, a client certificate.',
    reason: 'devices of another decade; an option of Node would weaken the public listener too',
  },
  H167: {
    sentence:
      'With `upstream.tls.pin` a device with another certificate gets not a byte: no request, upgrade, health check or login, also on a resumed session.',
    reason: 'Node asks `checkServerIdentity` neither on a resumed session nor without `rejectUnauthorized`',
  },
  H168: {
    sentence:
      '`check`, `init` and the log name the cause of a failed handshake and the fewest keys with which it succeeds, after at most three handshakes.',
    reason: 'the errors of OpenSSL name neither; a wrong remedy costs hours',
  },
  H169: {
    sentence:
      "A public path with `signed_in` is read with Postern's login at the device: by GET and HEAD, at exactly that path. Other methods, WebSockets, requests with a body and those whose fields name another path or method get no login there.",
    reason:
      "a device that asks for a login on its own page; only the operator opens a page under Postern's account",
  },
  H170: {
    sentence:
      "Requests carry the token of a session at the device in place of the client's, and one login renews it when the device says that it has expired. No client, log or metric gets token, password or login.",
    reason:
      "DSP0266 §13.3.4; RFC 6901; a client that has the session's token could reach the device without Postern",
  },
  H171: {
    sentence:
      "A session at the device is ended before the next login, and at a stop within its grace. The token goes to no address but the device's own.",
    reason: 'devices have four sessions and no more; the address of a session comes from a response',
  },
  H172: {
    sentence:
      "`upstream.forwarding` and `upstream.drop` leave out fields of the head for the device, never those that frame the message, `Host` or a WebSocket handshake. Forwarding claims of untrusted peers are removed with every setting. `check` prints the head's bytes and finds the setting that a device needs.",
    reason: 'firmware that reads 512 bytes of a head, or refuses `Via`; address spoofing',
  },
  H173: {
    sentence:
      'Names of fields of an HTTP/2 request reach the device capitalized as the registry writes them, and those of HTTP/1.1 as they came.',
    reason: 'HTTP/2 has names in lower case only (RFC 9113 §8.2.1), and old firmware compares bytes',
  },
  H174: {
    sentence:
      'With `upstream.version: "1.0"` the device gets HTTP/1.0: one request on a connection, with the length of its body. An upload of unknown length is collected or 411, and an upgrade is 400.',
    reason: 'firmware that knows no other version; RFC 9112 §2.5, and appendix C',
  },
  H175: {
    sentence:
      "With `host: target`, Postern's own origin in `Origin` and `Referer` becomes the device's, and any other stays foreign. In `Destination` and the tags of `If` (WebDAV) it becomes the scheme of the device and the `Host` that it gets, whatever `host` is. With `rewrite: on`, what names the device in `Link`, `Refresh` and `Set-Cookie` names Postern, as `Location` always does, with or without its scheme or user information; the rest stays byte for byte.",
    reason:
      "the device's own defence against requests of foreign pages (CSRF) must hold behind Postern; servers of WebDAV compare a `Destination` with their scheme and `Host`",
  },
  H178: {
    sentence:
      'With one place, or `reuse: never`, a connection is opened only when the one before it has ended on both sides, for which the device has a bounded time.',
    reason: 'firmware that serves one connection at a time refuses or resets a second one',
  },
  H179: {
    sentence:
      'A response without a length that is a stream, by its type or after `upstream.stream_after`, gives its place back. At most `upstream.max_streams` do, a quarter of them of one client.',
    reason: 'two viewers of a camera would take all places of `max_in_flight: 2`',
  },
  H198: {
    sentence:
      'The learned bound finds what the device can take: after 200 responses, or ten seconds where that is 64, at least 90 % of the throughput of the best fixed number and at most 1.5 times its p99, on twelve kinds of devices that break down under load. One that crashes does so at most once.',
    reason: 'the right number depends on the firmware, and no user knows it',
  },
  H199: {
    sentence:
      'A client that sends slowly, reads slowly or leaves, and a page that fails or takes long, do not bring the learned bound below what the device has answered at once.',
    reason: 'no client can take places from the others',
  },
  H200: {
    sentence:
      'A bound past which the device refused connections or let requests hang survives a restart; one more place is tried after an hour, then after two, up to a day.',
    reason: 'each attempt may crash the device, and an update of its firmware may change what it can take',
  },
  H201: {
    sentence:
      'Twenty requests that hang all reach the device within two seconds: the learned bound rises while requests wait and no response comes. From eight places on, a page that was answered before may be silent for five seconds first, and a silence right after the bound went up is a sign of overload.',
    reason: 'a device that is merely slow does not make others wait',
  },
  H180: {
    sentence:
      'A device whose kept connections cost 40 ms a request gets one connection per request once that has proved to be quicker; `check` and the log say so.',
    reason: "delayed acknowledgements: RFC 1122 §4.2.3.2 and Nagle's algorithm (RFC 896)",
  },
  H176: {
    sentence:
      'An upload of unknown length reaches the device with its length, up to 1 MiB; a longer one goes in chunks, whole and in order.',
    reason: 'devices that know no chunks keep a part of an upload and answer 200',
  },
  H177: {
    sentence:
      'An early response reaches a client that still sends, also where device or client lose it when bytes follow the head.',
    reason: 'webfsd drops a response that it corked; curl 7.88 waits without limit over HTTP/2',
  },
  H183: {
    sentence:
      'With `upstream.share`, a GET or HEAD that the device would see as the same as one at it gets a copy of its response when that is whole, at its own speed, with rate-limit fields, id and log line of its own; `for` keeps one. Responses for one client are not shared.',
    reason: 'fifty screens that poll one page are one question for a device with one connection',
  },
  H184: {
    sentence:
      'No client gets a state older than its own write: another method, a field that names another request, a body, an upgrade or a GET with a query for a path that is not shared ends sharing when it is admitted, and when it is answered or fails.',
    reason: 'a page that shows the old value after a change makes its user change it again',
  },
  H185: {
    sentence:
      'A client that leaves, is revoked or reads slowly changes nothing for the others that share its response. One that breaks off is broken for all who have a part of it, and is asked for again for the others.',
    reason: 'a shared response is only as good as one of its own; RFC 9112 §8',
  },
  H186: {
    sentence:
      'Fifty clients that poll one shared page every second ask the device once in a period, and none is refused. No client gets the body of another question.',
    reason: 'measured by `npm run bench -- --only D2`; a checker reads and writes at random',
  },
  H238: {
    sentence:
      "No response to a client changes the account under which Postern is signed in at the device: of the session's own cookie or token only a new expiry is taken. If another one is set, Postern signs in again.",
    reason: 'one client that signs in at the device as another user would do so for all of them',
  },
  H239: {
    sentence:
      "In a request that Postern signs in, a client's own cookies and fields with the names of the session do not reach the device: on no path, in no spelling, and not while there is no session.",
    reason:
      'session fixation; firmware reads names of cookies in any case, in quotes and percent-encoded, with `+` for a blank, and up to a NUL',
  },
  H240: {
    sentence:
      'After a redirect to the login page only a GET or HEAD is repeated, once. Another request gets the redirect, and Postern signs in before the next one, at the earliest five seconds after the last login of this kind. After a 401 each is repeated, as before.',
    reason: 'a reboot, a new password or a logout also leads to the login page; RFC 9110 §15.5.2',
  },
  H241: {
    sentence:
      'Before a request that may change something, a form session that was not seen alive for longer than sessions of this device have survived is looked at, once for all requests that wait.',
    reason: 'a POST after a night would only get the redirect to the login page',
  },
  H242: {
    sentence:
      "Only a login refuses credentials that have worked, never the response to a client's request. A session that never worked stays in use while its password is not tried again.",
    reason: 'a path that refuses every account would stop the sign-in for all clients',
  },
  H259: {
    sentence:
      'A session that a response to a client refused stays in use until the login in its place has worked: also while the device answers 429 to logins, or does not answer them. A login that refuses the password ends it, and so does a configured logout, which comes before the login.',
    reason:
      'a path that refuses every account would let one client provoke logins until the device takes no more',
  },
  H243: {
    sentence:
      'A device that changes its session with every response causes three logins, then one in five seconds. `check` and the log name it, and the key that has Postern follow it.',
    reason: 'a login with each response fills the sessions of the device, or locks the account',
  },
  H263: {
    sentence:
      'Each time that the device shows that it has no room for one more request at once, that is kept at once, logged as a warning, counted, and shown in `status` and on the page, also if the bound does not change.',
    reason: 'a crash that only the memory of the process knows happens again after the next restart',
  },
  H264: {
    sentence:
      'What broke the device as soon as one more request than usual came to it is not tried for a week, then once, and after a second time not by itself. Another address or other bounds, and an outage with no more requests than that, end it.',
    reason:
      'firmware that reboots may be a plant that stands still; a power cut breaks a device at any number',
  },
  H265: {
    sentence:
      'Where nothing is known above four, the learned bound rises by one, when the requests so far have been answered for a while.',
    reason: 'the number that breaks the device is passed by one, and known',
  },
  H266: {
    sentence: 'An attempt to open a connection again asks the bound that holds then.',
    reason: 'a device that comes back would get all at once that wait for it, and break again',
  },
  H267: {
    sentence:
      '`postern retry` lets a number be tried again that has broken the device; `status` and the log name it.',
    reason: 'a new firmware may take more, and only the operator knows of it',
  },
  H279: {
    sentence:
      'After a step of the wall clock, the next attempt above a bound comes as long after the last strike as before: for what this run has found by the clock that never steps, for what an earlier run has found by the time in its file.',
    reason: 'a board without a battery starts in 1970, and would wait for the attempt of a wall for weeks',
  },
  H281: {
    sentence:
      'While a login of Postern at the device makes no sense, because the password was refused or its file cannot be read, the file is read once a second and not for each request.',
    reason: 'a flood of requests must not become a flood of reads of a flash',
  },
  H286: {
    sentence:
      'What broke the device at one sidecar of a fleet holds for all: together they never have more requests there than had worked, but at least one each. A place passes to another sidecar only when its holder says that it has less, or is silent for 30 s.',
    reason: 'the sum of all sidecars breaks a device',
  },
  H287: {
    sentence:
      'Without the store what broke the device still holds, also over a restart. What a sidecar finds meanwhile is told when the store answers. A store that was emptied learns it again, and no share grows there until all have told theirs.',
    reason: 'a second crash must not follow from an outage of the store',
  },
  H288: {
    sentence:
      '`postern retry` at one sidecar of a fleet counts for all, also if the store answers only later.',
    reason: 'the operator knows of a new firmware, and has several sidecars',
  },
  H290: {
    sentence:
      'A sidecar of a fleet that hears nothing from the store for 20 s, or starts without it, has one place where the fleet shares places. The others take what a silent sidecar had after 30 s, except that one place, which stays free for an hour.',
    reason:
      'a sidecar that alone is cut off from the store cannot know it, and the others cannot know that it still has requests at the device',
  },
  H289: {
    sentence: 'In a fleet the learned bound begins with one place and rises by one.',
    reason: 'all sidecars grow at once: each step counts as often as there are sidecars',
  },
  H303: {
    sentence:
      'A body whose `Content-Length` is above `upstream.max_body` of its service is refused with 400 `invalid_request` (`http`: 413) before a byte of the request reaches the device, and before `100 Continue`. What follows it on its connection is read as a request only if all of the body was skipped.',
    reason: 'firmware that allocates whatever a length says; request smuggling',
  },
  H304: {
    sentence:
      'A body of unknown length is cut off before it passes `upstream.max_body`, over HTTP/1 and HTTP/2: while it is collected nothing reaches the device, and otherwise never its end, on a connection that carries no other request. Chunk sizes, extensions and trailers do not count. A response that has begun breaks off.',
    reason: 'a device that reboots in a long upload; a cut body must not look whole',
  },
  H305: {
    sentence:
      'With `enforce: false` a body above `upstream.max_body` reaches the device whole, and is counted, logged and explained as one that would be refused.',
    reason: 'a bound is tried on a live plant before it bites',
  },
  H306: {
    sentence:
      'No client gets a field of the device that `upstream.drop_response` of its service names, in any letter case and punctuation: not in a final, interim or shared response, nor in the answer to HEAD or a WebSocket. All other fields stay as they are.',
    reason: 'the name and version of its software lead an attacker to its weaknesses',
  },
  H307: {
    sentence:
      '`upstream.drop_response` cannot name what clients, caches, browsers, logins or Postern itself need of a response, in any spelling, and a pattern leaves it alone.',
    reason: 'a missing length, `Vary` or `Set-Cookie` breaks what the operator does not think of',
  },
  H353: {
    sentence:
      'A device with an `https` URL gets no request and no upgrade unless its certificate has the name of that URL and comes from `upstream.tls.ca`, or from an authority of the system; only `upstream.tls.pin` and `insecure` replace this. Postern never falls back to cleartext.',
    reason: 'RFC 9110 §4.3.4: whoever answers in place of the device would get its account and all requests',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
