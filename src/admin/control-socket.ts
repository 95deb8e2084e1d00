import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { GrantedExchange } from '../gate/live-exchanges.ts'
import type { Alarm, QuirkCondition } from '../overview/model.ts'
import type { RecentRequests } from '../record/recent-requests.ts'
import type { Clock } from '../system/clock.ts'
import { listenPrivately } from '../system/listen.ts'
import type { LateAddress } from '../system/listen-address.ts'
import { explainPathError } from '../system/named-file.ts'
import { ensureFolder } from '../system/own-files.ts'
import { isBug, SetupError } from '../system/setup-error.ts'
import { TurnBudget } from '../system/turn-budget.ts'
import type { GrantSummary } from '../tokens/grant-table.ts'
import type { HandedOut } from '../tokens/handout.ts'
import type { HandOut } from '../tokens/issuing.ts'
import { BY_OPERATOR } from '../tokens/revocation.ts'
import type { Tokens } from '../tokens/token-store.ts'
import { type AdminResponse, ClientGone, json, readSmallBody, STORE_SILENT, send } from './admin-response.ts'
import { inTurn } from './in-turn.ts'
import { MALFORMED_HANDOUT, readHandout, responseToHandout } from './operator-handout.ts'
import { readRevocation } from './operator-revocation.ts'

interface Dependencies {
  readonly tokens: Pick<Tokens, 'grants' | 'revoke'>
  readonly handOut: HandOut
  /** Whether other sidecars share the tokens: their requests in flight are not counted here. */
  readonly sharesTokens: boolean
  readonly requests: Pick<RecentRequests, 'recent' | 'explain' | 'remembered'>
  /** The requests in flight that a grant has admitted. */
  readonly inFlight: () => Iterable<GrantedExchange>
  readonly clock: Clock
  /** The addresses of the listeners; empty until they listen. */
  readonly listening: () => readonly string[]
  /** The addresses that this machine does not have yet. */
  readonly waiting: () => readonly LateAddress[]
  /** The alarms of the live page. */
  readonly alarms: () => readonly Alarm[]
  /** The places at each service of the device. */
  readonly places: () => readonly ServicePlaces[]
  /** The quirks that the responses of each service have shown. */
  readonly quirks: () => readonly RouteQuirk[]
  readonly memory: () => MemoryStatus
  /** The socket could not be opened, or a command failed because of a bug; `what` says which commands do not work. */
  readonly onFailure: (error: unknown, what: string) => void
}

/** The memory that clients make the process hold (bytes). */
export interface MemoryStatus {
  readonly held: number
  readonly limit: number
  /** A sentence about the origin of the limit. */
  readonly plan: string
  /** The bounds of the process, the least first. */
  readonly bounds: MemoryBounds
}

type MemoryBound = { readonly bytes: number; readonly by: string }
type MemoryBounds = readonly [MemoryBound, ...MemoryBound[]]

/** A quirk of a service of the device. */
export interface RouteQuirk extends QuirkCondition {
  readonly route: string | null
}

/** The places at a service of the device. */
export interface ServicePlaces {
  condition(): PlacesUse
  /** Forgets what broke the device, so that more requests at once are tried again. Returns whether anything was known. */
  retry(): boolean
}

/** Their condition. Times in ms since the Unix epoch. */
export interface PlacesCondition {
  /** The path of a service of `upstream.routes`; null for the main service. */
  readonly route: string | null
  readonly used: number
  /** `upstream.max_in_flight`, fixed or learned. */
  readonly limit: number
  readonly learned: boolean
  /** When one more place is tried; null if no try is planned. */
  readonly triedAgainAt: number | null
  /** One more request broke the device: no more come to it before `postern retry`. */
  readonly wall: boolean
  /** The device was away later with no more requests: their number may not be what broke it. */
  readonly doubted: boolean
  /** The places that the sidecars of the fleet share; null if none are shared. */
  readonly fleet: number | null
  /** More requests at once than this, in a fleet over all sidecars, broke the device or found no room; null if nothing is known. */
  readonly ceiling: number | null
}

/** The places at a service, what the device has beside them, and whether requests waited for places. */
export interface PlacesUse extends PlacesCondition {
  /** The responses that have become streams, and hold no place. */
  readonly streams: Used
  /** The WebSockets. */
  readonly tunnels: Used
  readonly waits: WaitsCondition
}

interface Used {
  readonly used: number
  readonly limit: number
}

/** The waits for places over the last day. Times in ms. */
export interface WaitsCondition {
  /** Since when they are counted, at most a day ago (since the Unix epoch). */
  readonly since: number
  readonly requests: number
  /** How many of them found no free place. */
  readonly waited: number
  /** How many of them got no place: the queue was full, or the wait too long. */
  readonly refused: number
  /** One request in a hundred waited for longer than this. */
  readonly p99: number
  /** So many waited for so long, or were refused, that more places are worth a thought: docs/measure.md has the rule. */
  readonly matters: boolean
  /** The `max` of `upstream.max_in_flight` that would do; null if it is not what bounds the places, or the waits do not matter. */
  readonly wouldDo: number | null
}

/** A request in flight whose grant has expired or was evicted: an upload or a download, which may continue to its end. */
export interface UnfinishedRequest {
  readonly grant: string
  readonly client: string
  /** When its head was read (ms since the Unix epoch). */
  readonly startedAt: number
}

/** The response to `GET /status`. */
export interface StatusAnswer {
  readonly alarms: readonly Alarm[]
  /** The addresses of the listeners, such as `0.0.0.0:8443`. That of the public listener is the last one. */
  readonly listening: readonly string[]
  /** The addresses that this machine does not have yet; left out without any. */
  readonly waiting?: readonly LateAddress[]
  readonly places: readonly PlacesUse[]
  readonly quirks: readonly RouteQuirk[]
  readonly memory: MemoryStatus
  /** `tokens` and `grants` are null if the shared store does not answer. */
  readonly tokens: { readonly access: number; readonly refresh: number } | null
  readonly grants: readonly GrantSummary[] | null
  /** Left out without such requests, or if `grants` is null. */
  readonly unfinished?: readonly UnfinishedRequest[]
}

/** The response to `POST /revoke`. */
export interface Revoked {
  /** The number of grants: live ones, and ended ones with a request in flight at this sidecar. */
  readonly revoked: number
  /** Only with shared tokens: `revoked` does not count ended grants with a request in flight at another sidecar. */
  readonly elsewhere?: 'uncounted'
}

/** The response to `POST /issue`. */
export type Issued = HandedOut

export interface ListedRequests {
  readonly requests: ReturnType<RecentRequests['recent']>
}

export interface Explained {
  /** The latest first; more than one if a trusted proxy sent the id more than once. */
  readonly explanations: ReturnType<RecentRequests['explain']>
  readonly remembered: ReturnType<RecentRequests['remembered']>
}

const TOO_LONG: AdminResponse = json(413, { error: 'the command is longer than 4 KiB' })

type Command = (req: IncomingMessage, query: URLSearchParams) => AdminResponse | Promise<AdminResponse>

export { LONGEST_ID } from '../gate/request-id.ts'

export function controlSocketPath(stateDir: string): string {
  return join(stateDir, 'control.sock')
}

/**
 * Opens the socket for `postern status`, `explain`, `issue`, `revoke` and `retry`: an HTTP server on a Unix socket. Only the sidecar's own
 * user and root can open it, whatever the mode of the folder, and both may issue and revoke tokens. If the socket cannot be opened, calls
 * `onFailure`, and the sidecar serves its clients without it.
 */
export async function openControlSocket(
  stateDir: string,
  {
    tokens,
    handOut,
    sharesTokens,
    requests,
    inFlight,
    clock,
    listening,
    waiting,
    alarms,
    places,
    quirks,
    memory,
    onFailure,
  }: Dependencies,
): Promise<AsyncDisposable> {
  async function status(): Promise<AdminResponse> {
    const found = await tokens.grants()
    const late = waiting()
    const known = {
      alarms: alarms(),
      listening: listening(),
      ...(late.length > 0 && { waiting: late }),
      memory: memory(),
      places: places().map((each) => each.condition()),
      quirks: quirks(),
    }
    // The alarms mostly say why the store does not answer.
    if (found === 'unavailable')
      return json(200, { ...known, tokens: null, grants: null } satisfies StatusAnswer)
    const sum = (count: (grant: GrantSummary) => number): number =>
      found.reduce((total, grant) => total + count(grant), 0)
    const counts = {
      access: sum((grant) => grant.accessTokens),
      refresh: sum((grant) => grant.refreshTokens),
    }
    const unfinished = unfinishedBeside(found)
    const all: StatusAnswer = { ...known, tokens: counts, grants: found }
    return json(200, unfinished.length === 0 ? all : { ...all, unfinished })
  }

  function unfinishedBeside(grants: readonly GrantSummary[]): readonly UnfinishedRequest[] {
    const known = new Set(grants.map(({ id }) => id))
    const ahead = clock.wall() - clock.monotonic()
    return Array.from(inFlight())
      .filter(({ grant }) => !known.has(grant))
      .map(({ grant, client, start }) => ({
        grant,
        client: client.address,
        startedAt: Math.round(ahead + start),
      }))
  }

  async function revoke(req: IncomingMessage): Promise<AdminResponse> {
    const body = await readSmallBody(req)
    if (body === undefined) return TOO_LONG
    const which = readRevocation(String(body))
    if (which === undefined)
      return json(400, { error: 'name what to revoke: {"all": true}, {"client": ADDRESS} or {"grant": ID}' })
    const revoked = await tokens.revoke(which, BY_OPERATOR)
    if (revoked === 'unavailable') return STORE_SILENT
    const elsewhere = sharesTokens ? ({ elsewhere: 'uncounted' } as const) : {}
    return json(200, { revoked, ...elsewhere } satisfies Revoked)
  }

  async function issue(req: IncomingMessage): Promise<AdminResponse> {
    const body = await readSmallBody(req)
    if (body === undefined) return TOO_LONG
    const handout = readHandout(String(body))
    return handout === undefined ? MALFORMED_HANDOUT : responseToHandout(handout, await handOut(handout))
  }

  function list(_req: IncomingMessage, query: URLSearchParams): AdminResponse {
    const wanted = { reason: query.get('reason') ?? undefined, status: query.get('status') ?? undefined }
    return json(200, { requests: requests.recent(wanted) } satisfies ListedRequests)
  }

  function explain(_req: IncomingMessage, query: URLSearchParams): AdminResponse {
    const explanations = requests.explain(query.get('id') ?? '')
    return json(200, { explanations, remembered: requests.remembered() } satisfies Explained)
  }

  const commands: ReadonlyMap<string, Command> = new Map<string, Command>([
    ['GET /status', status],
    ['GET /requests', list],
    ['GET /explain', explain],
    ['POST /issue', issue],
    ['POST /revoke', revoke],
    ['POST /retry', () => json(200, { retried: places().filter((each) => each.retry()).length })],
  ])

  const turns = new TurnBudget()
  const server = createServer({ requestTimeout: 5_000 }, (req, res) => {
    inTurn(turns, req, res, () => void serve(req, res))
  })
  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const [path = '', query] = (req.url ?? '').split('?', 2)
    const execute = commands.get(`${req.method} ${path}`)
    res.setHeader('Connection', 'close')
    try {
      const response = await execute?.(req, new URLSearchParams(query))
      send(res, response ?? json(404, { error: 'unknown command' }))
    } catch (error) {
      const name = path === '/requests' ? 'explain' : path.slice(1)
      if (!(error instanceof ClientGone)) onFailure(error, `postern ${name} failed`)
      send(res, json(500, { error: 'the command failed' }))
    }
  }
  let remove = async (): Promise<void> => {}
  try {
    makeFolder(stateDir)
    remove = await listenPrivately(server, controlSocketPath(stateDir))
  } catch (error) {
    onFailure(error, 'postern status, explain, issue, revoke and retry will not work')
  }
  return {
    async [Symbol.asyncDispose]() {
      await remove()
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

function makeFolder(path: string): void {
  try {
    ensureFolder(path)
  } catch (error) {
    if (isBug(error)) throw error
    const { reason, remedy } = explainPathError(error, path, 'write')
    throw new SetupError(reason, { cause: error, remedy })
  }
}
