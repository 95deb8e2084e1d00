import type { Promised } from '../promised.ts'

/** What holds when several sidecars share a store. */
export const FLEET = {
  H128: {
    sentence:
      'Sidecars that share a store accept the tokens of each other. A known token costs no question to the store; an unknown one is asked for at most once in 10 s, and at most 64 are asked for at a time, those of the clients in turn.',
    reason:
      'decision: sharing must not slow down admitted requests, nor turn guessed tokens into a flood at the store, nor let one client that guesses shut out the others',
  },
  H129: {
    sentence:
      'A revocation at one sidecar is felt at every other within 1 s, by open downloads and tunnels, too.',
    reason: 'C8; a stolen token would be used at the other sidecar',
  },
  H130: {
    sentence:
      'The first sidecar that sees a new password revokes the tokens of all. No token that is issued for the earlier password outlives that.',
    reason: 'C8; a login that is verified while the password changes',
  },
  H260: {
    sentence:
      'When the shared store loses its data, the tokens that a sidecar knows work until `tokens.offline_grace` has passed since it last heard of revocations. A second loss gives no further time.',
    reason:
      'a revocation that a partition held up is lost with the data; another user of the server may run FLUSHALL often',
  },
  H261: {
    sentence:
      'A store whose clock was set back gives no access token more than its lifetime, counted from when a sidecar first sees it.',
    reason: 'the server would state a time left of hours or decades; C7',
  },
  H131: {
    sentence:
      'While the shared store does not answer, known tokens work until they expire or for `tokens.offline_grace`. What has to be asked gets 500 `server_error` with `Proxy-Status`, never 401, and no question waits longer than `store.timeout`.',
    reason: 'decision: a failure of the store must not log out anybody, nor hold a request for long',
  },
  H132: {
    sentence:
      'The shared store holds no token and no password, only digests, a fingerprint, and responses sealed with a refresh token.',
    reason: 'its administrator, its files and its network see what it holds',
  },
  H133: {
    sentence:
      'A sidecar that was cut off learns of every revocation that it missed. A server that lost data brings no revoked token back to a sidecar that knows of the revocation.',
    reason: 'a connection breaks; a primary fails before its replica has the last writes',
  },
  H134: {
    sentence: 'A sidecar with another password than the shared store logs nobody in, and says so.',
    reason: 'one of the sidecars still has the old file; see H130',
  },
  H135: {
    sentence:
      'Every question to the shared store has a reply or a failure within `store.timeout`, whether the server is frozen, busy or gone, or the connection half-open. A late reply is never taken for another.',
    reason: 'bounded waits; a reply to the wrong question would be the token of someone else',
  },
  H136: {
    sentence:
      'A shared store that was down, was restarted or has failed over is used again without a restart of the sidecar.',
    reason: 'redundancy: floating addresses, Sentinel, Cluster',
  },
  H137: {
    sentence:
      'The sidecar verifies the certificate and the name of the shared store, takes TLS 1.2 or 1.3 only, needs only a few commands there, and shows its password in no message.',
    reason: 'least privilege; eavesdropping on the network',
  },
  H138: {
    sentence:
      'With shared windows (`limits.store`), exactly the limit passes per window through all sidecars together. The clock of the store decides.',
    reason: 'C14; a client that is refused at one sidecar would go to the next',
  },
  H139: {
    sentence:
      'While the shared store does not answer, each sidecar counts alone: no request waits longer than `store.timeout`, fails or is unlimited. A client that has used up its shared window stays refused.',
    reason: 'decision: a failure of the store must neither stop the device nor lift the limits',
  },
  H140: {
    sentence:
      'A request in a window that is known to be used up is refused without a question to the shared store, and never after the window has closed.',
    reason: 'request flood: it would reach the store of all sidecars',
  },
  H143: {
    sentence:
      'A request with a known token costs the shared store nothing, and with shared windows one command at most, which requests that arrive together share.',
    reason: 'decision: one store must carry many sidecars under load',
  },
  H144: {
    sentence:
      'No token whose response has arrived is lost by `kill -9`, whether of a sidecar or of a server that writes before it replies (`appendfsync always`).',
    reason: 'C9 for a fleet; out-of-memory kills, power cuts',
  },
  H145: {
    sentence:
      'In a failover, no token that a replica has confirmed is lost, no live token is refused, and logins work again by themselves. A login fails if the primary ends before it is confirmed, or turns out to be a former one.',
    reason: 'redundancy: the new primary has only what was replicated',
  },
  H146: {
    sentence:
      'A Cluster serves tokens like one server. While the node of the keys is gone, known tokens work.',
    reason: 'redundancy; all keys of a device are in one slot',
  },
  H147: {
    sentence:
      'A shared store that is slow, stalled, out of memory, made a replica or emptied refuses no live token that a sidecar knows, and everything works again by itself. One that is out of memory still revokes. A revocation of an access token reaches sidecars that know it, even if the store has lost it.',
    reason: 'decision: the fault of a server or a network must not log out anybody',
  },
  H274: {
    sentence:
      'A name that a reload removes while the shared store does not answer, or accepts no writes, is over at its sidecar at once and at the others when the store takes it, with what it has open, also if the name is back by then. Until then that sidecar takes no token of the name from the store, and logs nobody in.',
    reason: 'an operator who removes a name expects that nobody uses its tokens any more; C8, H194',
  },
  H275: {
    sentence:
      'A session of a browser that ends while the shared store does not answer (logout, another login, `browser.login: off`) is over at once, with what it has open; its login is revoked when the store answers.',
    reason:
      'the user has left the browser; a WebSocket would go on for a week, because its login is still valid',
  },
  H284: {
    sentence:
      'A shared store that answers but accepts no writes is heard all the same, also while a password that has changed waits to be published there.',
    reason:
      'a sidecar that only retried the write would hear of no revocation, and end all tokens after `tokens.offline_grace`',
  },
  H276: {
    sentence:
      'When the shared store loses a window that is open, each sidecar adds the requests that it knows of until that window would have closed. The log and `postern_store_errors_total{operation="lost"}` say so.',
    reason:
      'another program that fills or empties the server, or a step of its clock, would give every client its limit again',
  },
  H277: {
    sentence:
      'A revocation is complete, whichever keys the shared store has lost: by token, grant, client or name, also of tokens that only a sidecar still knows. If it cannot be, it fails. What the store loses is logged and counted.',
    reason:
      'C8; a server that evicts keys loses them one by one, and what revokes a grant may be lost before its tokens',
  },
  H278: {
    sentence:
      'A step of the clock of the shared store is logged. Tokens of a login that is later than that clock get their lifetime at most, from when a sidecar looks after them: 50 grants in ten seconds.',
    reason: 'C7; a refresh token that was issued at a wrong time would live for decades',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
