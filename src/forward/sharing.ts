import type { ServiceConfig } from '../config/upstream-fields.ts'
import type { Exchange, Forward, ForwardListener } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import { atForward } from './forward-exchange.ts'
import { requestFields } from './request-fields.ts'
import type { RoundTripService, Substitutes } from './round-trip-service.ts'
import { keyOf, onlyReads, type Reader, shareable } from './share.ts'
import { SharedResponse, type SharingRules } from './shared-response.ts'
import type { Upstream } from './upstream.ts'

interface SharingDependencies {
  readonly fields: RoundTripService['fields']
  readonly clock: Clock
  /** The path of a service of `upstream.routes`; empty for the main service. */
  readonly route: string
  /** How long (ms) a response without a length goes on before it is a stream. */
  readonly streamAfter: number
  /** Called when a request gets the response to another one, which was kept or still at the device. */
  readonly onShared: (isKept: boolean) => void
}

/** The way of a service's requests to the device, on which some of them share a response. */
interface SharingUpstream {
  readonly upstream: Upstream
  /** Lets no further request share the responses that are there. */
  readonly close: () => void
}

/** The most responses that are shared or kept at once. Each holds up to `LONGEST_SHARED` of a body. */
const MOST = 128

/**
 * Requests that the device would see as the same share one response: the first is forwarded, and the others wait for its response, even if
 * the first client leaves. Requests for other paths are forwarded as they are.
 */
function share(
  inner: Upstream,
  { share: { paths, for: keptFor }, queue: { timeout } }: ServiceConfig,
  changes: Changes,
  { clock, fields: settings, route, streamAfter, onShared }: SharingDependencies,
): SharingUpstream {
  const mayAsk = shareable(paths)
  /** The shared responses, the oldest first. */
  const held = new Set<SharedResponse>()
  const rules: SharingRules = { clock, streamAfter, keptFor, held, onAlone: askAlone, onShared }
  let counted = changes.count()

  function closeAll(): void {
    for (const response of held) response.close()
  }

  function ask(reader: Reader): void {
    if (reader.exchange.answered) {
      reader.listener.ended(reader.exchange, undefined)
      return
    }
    // A response from before a change may be old.
    const now = changes.count()
    if (now !== counted) closeAll()
    counted = now
    const known = held.values().find(({ open, asker }) => open && asker.key === reader.key)
    if (known !== undefined) {
      known.join(reader)
      return
    }
    // The oldest response that is only kept makes room.
    const spare = held.size < MOST ? undefined : held.values().find(({ ended }) => ended)
    spare?.close()
    if (held.size >= MOST) askAlone(reader)
    else askFor(reader)
  }

  function forward(exchange: Forward, listener: ForwardListener, substitutes?: Substitutes): void {
    try {
      inner(exchange, listener, undefined, substitutes)
    } catch (bug) {
      listener.onBug(exchange, bug)
    }
  }

  function askAlone({ exchange, listener }: Reader): void {
    forward(exchange, listener)
  }

  function askFor(asker: Reader): void {
    const response = new SharedResponse(asker, rules)
    held.add(response)
    forward(asker.exchange, listenerOf(response), { client: response, fields: asker.fields })
  }

  /**
   * A response that failed or broke off is the end for its asker. The clients that wait for it ask again: each once after a failure of the
   * device, and after a refusal for want of a place for as long as a request may wait for one.
   */
  function listenerOf(response: SharedResponse): ForwardListener {
    const { asker } = response
    const givesUp = (reader: Reader, kind: Refusal['kind']): boolean =>
      kind === 'overloaded' ? clock.monotonic() - reader.since >= timeout : reader.again
    return {
      ended(_exchange, refusal) {
        const { failure, cause } = asker.exchange
        const why: Refusal = refusal ?? { kind: 'upstream', failure: failure ?? 'http_response_incomplete' }
        for (const reader of response.dismiss()) {
          if (reader === asker || givesUp(reader, why.kind)) {
            reader.exchange.failure = failure
            reader.exchange.cause = cause
            reader.listener.ended(reader.exchange, why)
          } else ask({ ...reader, again: reader.again || why.kind !== 'overloaded' })
        }
      },
      onBug(exchange, bug) {
        const waiting = response.dismiss()
        response.cut()
        asker.listener.onBug(exchange, bug)
        for (const reader of waiting) if (reader !== asker) askAlone(reader)
      },
      refuses: asker.listener.refuses,
    }
  }

  const upstream = atForward((exchange, listener: ForwardListener, now?: number) => {
    if (!mayAsk(exchange) || exchange.classified.framing !== null) {
      inner(exchange, listener, now)
      return
    }
    exchange.route = route
    const fields = requestFields(exchange, null, settings.request)
    const key = keyOf(exchange, fields, settings.request.set)
    const since = now ?? clock.monotonic()
    ask({ exchange, listener, key, fields, since, again: false })
  })
  return { upstream, close: closeAll }
}

/** The requests that may change what the device answers. A response that began before such a request was answered gets no more clients. */
class Changes {
  #count = 0
  readonly #unanswered = new Set<Exchange>()

  /** A number that grows when such a request is admitted, when its response begins, and when it has ended. */
  count(): number {
    for (const exchange of this.#unanswered) {
      if (!exchange.answered) continue
      this.#unanswered.delete(exchange)
      this.#count += 1
    }
    return this.#count
  }

  begin(exchange: Exchange): void {
    this.#count += 1
    this.#unanswered.add(exchange)
    exchange.onEnd(() => {
      this.#count += 1
      this.#unanswered.delete(exchange)
    })
  }
}

export type Sharing = ReturnType<typeof createSharing>

/**
 * The sharing of responses of all services of a device (`upstream.share`).
 *
 * @param before whose changes are still under way
 */
export function createSharing(
  services: readonly ServiceConfig[],
  { changes }: { readonly changes: Changes } = { changes: new Changes() },
) {
  const paths = services.flatMap(({ share: { paths } }) => paths)
  const isShared = shareable(paths)

  function isChange(exchange: Forward): boolean {
    return !onlyReads(exchange) || (exchange.classified.target.includes('?') && !isShared(exchange))
  }

  return {
    changes,
    /** Adds to one service the sharing that its configuration asks for. */
    of: (inner: Upstream, service: ServiceConfig, deps: SharingDependencies): SharingUpstream =>
      service.share.paths.length === 0
        ? { upstream: inner, close() {} }
        : share(inner, service, changes, deps),
    /**
     * Notes a change of the device; undefined if nothing is shared. A change is each request that is not a plain GET or HEAD, each upgrade,
     * and each GET or HEAD with a query for a path that is not shared: much firmware acts on such a GET.
     */
    note:
      paths.length === 0
        ? undefined
        : (exchange: Forward): void => {
            if (isChange(exchange)) changes.begin(exchange)
          },
  }
}
