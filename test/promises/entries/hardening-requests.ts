import type { Promised } from '../promised.ts'

/** Attacks with fields, paths, credentials and forms of otherwise well-formed requests. */
export const REQUESTS = {
  H15: {
    sentence:
      '`Connection` removes the fields that it names, but not those that Postern sets, guards or frames the message with.',
    reason: 'RFC 9110 §7.6.1; hop-by-hop abuse, as in CVE-2022-1388 of BIG-IP',
  },
  H16: {
    sentence:
      'Fields of one hop (`Keep-Alive`, `TE`, `Trailer`, `Expect`, `Upgrade`, `Proxy-*`) are not forwarded.',
    reason: 'RFC 9110 §7.6.1; httpoxy for `Proxy`',
  },
  H17: {
    sentence:
      'Forwarding claims (`X-Forwarded-*`, `Forwarded`, `X-Real-IP`) of an untrusted peer are replaced.',
    reason: 'address spoofing; RFC 7239 §8.1',
  },
  H18: {
    sentence: 'A field name that differs from a guarded one only in its punctuation is refused.',
    reason:
      'CGI maps `X_Forwarded_For`, `X.Forwarded.For` and `X-Forwarded-For` to one variable (RFC 3875 §4.1.18)',
  },
  H19: {
    sentence: 'Two `Authorization` fields are 401.',
    reason: 'Node keeps the first, other readers the last',
  },
  H20: {
    sentence: 'A missing, repeated, empty or malformed `Host` is refused.',
    reason: 'RFC 9112 §3.2; routing and cache confusion',
    check:
      'sends a valid token without Host and with two of them in both orders, and two of them without a token',
  },
  H21: {
    sentence: 'A field named `__proto__` or `constructor` is an ordinary field.',
    reason: 'prototype pollution in JavaScript',
  },
  H22: {
    sentence: 'A head with too many bytes or fields is refused, also when it never ends.',
    reason: 'memory exhaustion; RFC 6585 §5',
  },
  H23: {
    sentence: 'Repeated `Set-Cookie` fields are kept, in order.',
    reason: 'RFC 9110 §5.3: they cannot be joined',
  },
  H24: {
    sentence:
      'No disguise of a path (encoding, dots, slashes, case) passes for the token endpoint or for another route.',
    reason: 'path confusion between the gate and the service behind it',
    check:
      'asks without a token for other spellings of the path: encoded, with dots, slashes or semicolons, in upper case, with the suffix of a style sheet, and behind `/oauth/token`',
  },
  H25: {
    sentence: 'A target in absolute form reaches the device in origin form, or is refused.',
    reason: 'RFC 9112 §3.2.2; the host in the target can differ from `Host`',
  },
  H26: {
    sentence: '`OPTIONS *` is answered by Postern.',
    reason: 'RFC 9110 §9.3.7: it asks the server that it reaches, which is Postern',
  },
  H27: {
    sentence:
      'A target with a fragment, a blank or a byte that is not ASCII is refused in every HTTP version.',
    reason: 'RFC 9112 §3.2; RFC 9113 §8.3.1; CVE-2023-45539 in HAProxy',
  },
  H28: {
    sentence:
      'A token request with a repeated parameter, or a content type that is not exactly a form in UTF-8, is 400.',
    reason: 'RFC 6749 §3.2; parsers that guess another type',
  },
  H29: {
    sentence:
      'A token request over 8 KiB is refused, by its length before it is read, and the refusal arrives.',
    reason: 'memory exhaustion before authentication',
  },
  H30: {
    sentence: 'A token request that arrives byte by byte is cut at its deadline.',
    reason: 'slow POST (R.U.D.Y.)',
  },
  H31: {
    sentence: 'NUL, invalid UTF-8 and bad percent-encoding in a form are 400.',
    reason: 'RFC 6749 appendix B; decoders that replace bytes make two passwords equal',
  },
  H32: {
    sentence:
      'Password hashes run in a bounded queue and off the event loop. Clients take weighted turns, and equal passwords that wait at the same time share one hash.',
    reason: 'login flood; CVE-2016-20013 for the cost of long passwords',
  },
  H33: {
    sentence: 'Concurrent refreshes with one refresh token give one new pair under rotation.',
    reason: 'a race would mint two families from one token; RFC 9700 §4.14.2',
  },
  H34: {
    sentence: 'Access tokens and refresh tokens never stand in for each other.',
    reason: 'token confusion; RFC 6749 §1.5',
  },
  H35: {
    sentence: 'Every odd spelling of a bearer credential is either that token or 401.',
    reason: 'RFC 6750 §2.1; RFC 9110 §11.4',
  },
  H36: {
    sentence: 'A token in a query, a body or a cookie counts for nothing.',
    reason: 'RFC 6750 §2.2 and §2.3 are not offered; RFC 9700 §4.3.2: URLs are logged',
  },
  H95: {
    sentence: 'A percent-encoded line break in a path reaches the device encoded.',
    reason: 'header injection by a proxy that decodes paths',
  },
  H193: {
    sentence:
      'With `passwords`, a request that the `allow` of its name does not have gets 400 `insufficient_scope` (`http`: 403 with the challenge). It counts, and not a byte of it reaches the device, also with `enforce: false`. An ambiguous path is in no list of paths, an upgrade needs `UPGRADE`, fields that override method or path are removed (H203), a `Destination` has to be allowed, too (H204), and public paths stay public.',
    reason: 'a monitor that only reads holds the key to the firmware upload; RFC 6750 §3.1',
  },
  H194: {
    sentence:
      'Each name of `passwords` is bound to its own password: a change, the removal or the renaming of a name ends its tokens, tunnels and streams and no others, also across a restart and in a fleet. The token file of one password is read as that of `admin`, or of the only name.',
    reason: 'rotating the password of one purpose must not stop the others; C8 for each name',
  },
  H195: {
    sentence:
      'Each login verifies the password of every name, in one entry of the hashing queue, so its time does not tell which name it is. A password of two names logs nobody in; `check` and the log say so.',
    reason: 'timing; a login must mean one name',
  },
  H196: {
    sentence:
      'A reload applies a changed `allow` to live tokens, and ends tunnels and streams that it does not have any more.',
    reason: 'an operator who takes a right away means now',
  },
  H209: {
    sentence:
      'A reload judges every forwarded request that is in flight by the new rules, and by the same code as a new request: address, path, name, session, `enforce`. It ends what they do not admit, also a request whose token is still being looked up, counts it and logs why. Limits do not count: the request was counted at its arrival.',
    reason: 'an operator who shuts a door means now',
  },
  H210: {
    sentence:
      'When `browser.login` is switched off, all sessions end with their grants, and no cookie of theirs works when it is switched on again.',
    reason: 'a session that its operator has ended would come back',
  },
  H197: {
    sentence:
      'The name of a login reaches the device only by `{client_name: true}`, and no client can name itself in that field. It stands in the log, `status`, `explain`, the page and the metrics, and `per: name` gives it one window.',
    reason: 'identity spoofing by header; who did it has to be found',
  },
  H308: {
    sentence:
      'With `passwords`, a login whose `username` is a configured name succeeds only with the password of that name. Every other username, also one in another letter case, is ignored. All passwords are verified in either case, the response is the one to a wrong password, and the log and `explain` alone name the reason.',
    reason: 'a client that names itself `monitor` must not get the rights of the admin by mistake',
  },
  H309: {
    sentence:
      'With `per: name`, `passwords[].limit` gives all logins of a name another limit than that of the API. The rate-limit fields, `explain`, the metrics, the page and a fleet follow it, and a reload changes it; without `per: name` it is an error.',
    reason: 'a script that polls needs another limit than the person who repairs the device',
  },
  H311: {
    sentence:
      'With `tokens.grant_lifetime` a login ends after that time, however often it is refreshed: its access and refresh tokens, WebSockets and streams, after a restart and at each sidecar of a fleet, too. `expires_in` never goes beyond it, and is never 0: in its last second a login gets no new token. A reload applies it to the logins that exist, too, and a clock that is set back gives none more time.',
    reason: 'rotation renews a stolen login for ever; RFC 9700 §4.14',
  },
  H202: {
    sentence:
      'A field of a client reaches a CGI program under no name that `upstream.headers` sets or `upstream.drop` drops, whatever the punctuation of its name. Any other name reaches the device byte for byte.',
    reason:
      'servers turn every byte of a name that is no letter or digit into `_`: identity spoofing by header',
  },
  H203: {
    sentence:
      'A request that its path or method admits (`public_paths`, `allow`) reaches the device without the fields from which known frameworks and servers take another path, method or host, in any case and punctuation. docs/hardening.md lists them.',
    reason: 'frameworks take the request from `X-Original-URL` or `X-HTTP-Method-Override`; CVE-2018-14773',
  },
  H204: {
    sentence:
      'The `Destination` of such a request is admitted as its path is, with the same method, or the request is refused as one for that path. One that is repeated, or is no path of the host that the client used, is refused.',
    reason: 'WebDAV copies and moves to it (RFC 4918 §10.3)',
  },
  H205: {
    sentence:
      '`oauth.revocation_path` is a plain path, and neither is nor covers one of Postern itself; otherwise the start and `check` fail.',
    reason: 'a login page or token endpoint that silently became another one',
  },
  H297: {
    sentence:
      'With `enforce: false` in an entry of `passwords`, a request that its `allow` would refuse is forwarded as the client sent it, counted by name as `would_refuse`, logged and explained; so is one with a field that `allow` would hold back. Nothing else is laxer: the token and its end, limits, faults, other names.',
    reason: 'a list that is too short stops a client that worked; what is tried must not open anything else',
  },
  H298: {
    sentence:
      'A reload after which an `allow` holds ends the streams and tunnels that were forwarded without it, in flight as new ones: those that it does not have, and those with a field that it holds back.',
    reason: 'a tunnel that a trial let in would stay for ever',
  },
  H299: {
    sentence:
      '`check`, the log, `status` and the page name each `allow` that is on trial. `enforce: false` without an `allow` is an error.',
    reason: 'a forgotten trial is an open door',
  },
  H300: {
    sentence:
      '`postern propose` prints an `allow` that `check` takes as it stands and that admits what it was made of. It opens a method and a path only together, as they were seen, says behind each path what it opens beyond that, and never proposes `/`.',
    reason: 'a list that is written by hand is too short or too wide',
  },
  H301: {
    sentence:
      'Requests that Postern or the device refused, and paths that the log has cut or changed, stay out of a proposal, are counted and shown. It warns of a log that lacks requests.',
    reason: 'a proposal from a scan would allow what was scanned',
  },
  H302: {
    sentence:
      'Nothing that a log holds becomes more of the proposal than a path of `allow`, in the characters that a configuration takes there, or a part of a comment in printable ASCII. What `propose` holds is bounded, however many and whatever lines it reads.',
    reason: 'YAML injection by a path; a log of gigabytes',
  },
  H356: {
    sentence:
      'A password of 200 characters of any kind, other than line breaks and NUL, logs in, as text in the file and as the hash of `hash-password`, and nothing that differs from it in one character does. No rule asks for kinds of characters.',
    reason:
      'rules about characters, and passwords that are cut, make guessing easier; NIST SP 800-63B §3.1.1.2',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
