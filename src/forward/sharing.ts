import type { ServiceConfig } from '../config/upstream-fields.ts'
import type { Exchange, Forward, ForwardListener } from '../http/exchange.ts'
import type { Clock } from '../system/clock.ts'
import { FanOut, type FanOutRules } from './fan-out.ts'
import { requestFields } from './request-fields.ts'
import type { Detour, RoundTripService } from './round-trip-service.ts'
import { keyOf, onlyReads, type Reader, shareable } from './share.ts'
import type { Upstream } from './upstream.ts'

interface SharingDependencies {
  /** A reload replaces what it holds. */
  readonly fields: RoundTripService['fields']
  readonly clock: Clock
  /** The path of a service of `upstream.routes`; empty for the main service. */
  readonly route: string
  /** A request got the response to another one, which was kept or still at the device. */
  readonly onShared: (isKept: boolean) => void
}

/** The most responses that are shared or kept at once. Each holds up to `LONGEST_SHARED` of a body. */
const MOST = 128

/** How long (ms) a client that was cut off a response asks for it by itself. */
const ALONE_FOR = 600_000

/**
 * Requests that the device would see as the same share one response: the first is forwarded, and the others wait for its response, even if
 * the first client leaves. Requests for other paths are forwarded as they are.
 */
function share(
  inner: Upstream,
  { share: { paths, for: keptFor }, queue: { timeout }, streamAfter }: ServiceConfig,
  changes: Changes,
  { clock, fields: settings, route, onShared }: SharingDependencies,
): Upstream {
  const mayAsk = shareable(paths)
  /** The responses that others may join or that still have readers, in the order in which they were asked for. */
  const live = new Set<FanOut>()
  /** When it is forgotten that a client was too slow for a long response, by client and target. */
  const long = new Map<string, number>()
  const rules: FanOutRules = {
    clock,
    joinedFor: streamAfter,
    keptFor,
    live,
    onAlone: askAlone,
    onShared,
    onCut,
  }
  let epoch = changes.now
  let adapted = settings.response

  function ask(reader: Reader): void {
    if (reader.exchange.answered) {
      reader.listener.ended(reader.exchange, undefined)
      return
    }
    // A response from before a change may be old, and one from before a reload was adapted by other settings.
    if (changes.now !== epoch || settings.response !== adapted) for (const response of live) response.close()
    epoch = changes.now
    adapted = settings.response
    const known = live.values().find(({ open, asker }) => open && asker.key === reader.key)
    if (known?.joinable === true) known.join(reader)
    else {
      known?.close()
      // The oldest response that is only kept makes room.
      const spare = live.size < MOST ? undefined : live.values().find(({ ended }) => ended)
      spare?.close()
      if (live.size >= MOST) askAlone(reader)
      else askFor(reader)
    }
  }

  /** A client that was cut off and asks again gets the whole response by itself. */
  function wasCut(request: Forward): boolean {
    return long.size > 0 && clock.monotonic() < (long.get(readerOf(request)) ?? 0)
  }

  function onCut(request: Forward): void {
    const [oldest] = long.keys()
    if (long.size >= MOST && oldest !== undefined) long.delete(oldest)
    long.set(readerOf(request), clock.monotonic() + ALONE_FOR)
  }

  function forward(request: Forward, listener: ForwardListener, detour?: Detour): void {
    try {
      inner(request, listener, detour)
    } catch (bug) {
      listener.onBug(request, bug)
    }
  }

  function askAlone({ exchange, listener }: Reader): void {
    forward(exchange, listener)
  }

  function askFor(asker: Reader): void {
    const response = new FanOut(asker, rules)
    live.add(response)
    forward(asker.exchange, listenerOf(response), { client: response, fields: asker.fields })
  }

  /**
   * If there is no response, the asker is refused, and the others ask again: after a failure of the device each once, after a refusal for
   * want of a place as long as a request may wait for one.
   */
  function listenerOf(response: FanOut): ForwardListener {
    const { asker } = response
    return {
      ended(_request, refusal) {
        if (refusal === undefined) return
        const waiting = response.dismiss()
        const isLate = (reader: Reader): boolean =>
          refusal.kind === 'overloaded' ? clock.monotonic() - reader.since >= timeout : reader.again
        for (const reader of waiting) {
          if (reader === asker || isLate(reader)) {
            const { failure, cause } = asker.exchange
            reader.listener.ended(Object.assign(reader.exchange, { failure, cause }), refusal)
          } else {
            reader.again ||= refusal.kind !== 'overloaded'
            ask(reader)
          }
        }
      },
      onBug(request, bug) {
        const waiting = response.dismiss()
        response.cut()
        asker.listener.onBug(request, bug)
        for (const reader of waiting) if (reader !== asker) askAlone(reader)
      },
    }
  }

  return (request, listener) => {
    if (!mayAsk(request) || request.classified.framing !== null || wasCut(request)) {
      inner(request, listener)
      return
    }
    request.route = route
    const fields = requestFields(request, null, settings.request)
    const key = keyOf(request, fields, settings.request.set)
    const since = clock.monotonic()
    ask({ exchange: request, listener, key, fields, since, again: false, sent: 0, full: false })
  }
}

function readerOf({ grant, client, classified }: Forward): string {
  return `${grant ?? client.key} ${classified.target}`
}

/** The requests that may change what the device answers. A response that began before such a request was answered is joined no more. */
class Changes {
  #epoch = 0
  readonly #unanswered = new Set<Exchange>()

  /** A number that grows when such a request is admitted, when its response begins, and when it has ended. */
  get now(): number {
    for (const request of this.#unanswered) {
      if (!request.answered) continue
      this.#unanswered.delete(request)
      this.#epoch += 1
    }
    return this.#epoch
  }

  begin(request: Exchange): void {
    this.#epoch += 1
    this.#unanswered.add(request)
    request.onEnd(() => {
      this.#epoch += 1
      this.#unanswered.delete(request)
    })
  }
}

export type Sharing = ReturnType<typeof createSharing>

/** The sharing of responses of all services of a device (`upstream.share`). */
export function createSharing(services: readonly ServiceConfig[]) {
  const paths = services.flatMap(({ share: { paths } }) => paths)
  const isShared = shareable(paths)
  const changes = new Changes()

  function isChange(request: Forward): boolean {
    return !onlyReads(request) || (request.classified.target.includes('?') && !isShared(request))
  }

  return {
    /** One service, with the sharing that its configuration asks for. */
    of: (inner: Upstream, service: ServiceConfig, deps: SharingDependencies): Upstream =>
      service.share.paths.length === 0 ? inner : share(inner, service, changes, deps),
    /**
     * The whole device. A change is each request that is not a plain GET or HEAD, each upgrade, and each GET or HEAD with a query for a
     * path that is not shared: much firmware acts on such a GET.
     */
    watch(inner: Upstream): Upstream {
      if (paths.length === 0) return inner
      return (request, listener) => {
        if (isChange(request)) changes.begin(request)
        inner(request, listener)
      }
    },
  }
}
