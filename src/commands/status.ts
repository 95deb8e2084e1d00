import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type {
  MemoryStatus,
  PlacesCondition,
  PlacesUse,
  RouteQuirk,
  StatusAnswer,
  UnfinishedRequest,
  WaitsCondition,
} from '../admin/control-socket.ts'
import type { Alarm } from '../overview/model.ts'
import { systemClock } from '../system/clock.ts'
import type { LateAddress } from '../system/listen-address.ts'
import { SetupError } from '../system/setup-error.ts'
import { inMib } from '../system/text.ts'
import type { GrantSummary } from '../tokens/grant-table.ts'
import { columnsOf, counted, tableOf, wrapped } from './columns.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { control } from './control.ts'
import { type SidecarOptions, stateDirOf } from './find-sidecar.ts'
import { spanOf } from './times.ts'

export interface StatusOptions extends SidecarOptions {
  readonly json: boolean
}

/** A sidecar of another version may lack the optional parts, or fields in them. */
export type Status = Pick<StatusAnswer, 'tokens' | 'grants'> & Partial<StatusAnswer>

/**
 * Lists the alarms, and the grants with the ids for `postern revoke`. If the shared store does not give the grants, prints the rest and
 * rejects with exit code 1.
 */
export async function statusCommand(options: StatusOptions, io: CommandIo): Promise<ExitCode> {
  const stateDir = stateDirOf('status', options, io)
  const status = await control<Status>(stateDir, { method: 'GET', path: '/status' })
  io.stdout.write(
    options.json ? `${JSON.stringify(status)}\n` : statusText(status, alertsPage(io), columnsOf(io.stdout)),
  )
  if (status.grants !== null) return 0
  const reason = 'who is logged in is not known: the shared store does not respond, or refuses the command'
  throw new SetupError(reason, { exitCode: 1, remedy: '/readyz says which' })
}

/** The path of the page about the alarms: in the folder of the package if it exists there, otherwise in the repository. */
function alertsPage({ pages }: CommandIo): string {
  const page = pages === undefined ? undefined : join(pages, 'alerts.md')
  return page !== undefined && existsSync(page) ? page : 'docs/alerts.md'
}

function statusText(status: Status, page: string, columns: number): string {
  const { alarms = [], waiting = [], places = [], quirks = [], unfinished = [], memory } = status
  const present = systemClock.wall()
  const parts = [
    ...waiting.map((each) => waitingLine(each, columns)),
    ...alarms.map((each) => alarmLines(each, present, page, columns)),
    ...(alarms.length > 0 ? ['\n'] : []),
    grantsText(status, present, columns),
    ...places.map((each) => placesLine(each, present, columns) + useLines(each, present, columns)),
    ...quirks.map((each) => quirkLine(each, present, columns)),
    memory === undefined ? '' : memoryLine(memory, columns),
    unfinishedLines(unfinished, present, columns),
  ]
  return parts.join('')
}

function waitingLine({ key, address }: LateAddress, columns: number): string {
  const text = `Waiting for ${key} ${address}, which this machine does not have yet: Postern listens there as soon as it has it.`
  return `${wrapped(text, 2, columns)}\n\n`
}

function memoryLine({ held, plan }: MemoryStatus, columns: number): string {
  return `${wrapped(`memory: clients hold ${inMib(held)}; ${plan}`, 2, columns)}\n`
}

const LEVELS = { critical: 'CRITICAL', warning: 'WARNING ', note: 'note    ' } as const

/** An alarm: what is wrong, and below it the consequence, the remedy and the link to the page. */
function alarmLines(
  { level, name, what, since, meaning, remedy }: Alarm,
  present: number,
  page: string,
  columns: number,
): string {
  const indent = LEVELS[level].length + 1
  const lasting = since === null ? '' : `, for ${spanOf(present - since)}`
  const hint = `${meaning} ${remedy} More: ${page}#${name.toLowerCase()}`
  return `${LEVELS[level]} ${wrapped(`${what}${lasting}`, indent, columns)}\n${' '.repeat(indent)}${wrapped(hint, indent, columns)}\n`
}

function grantsText({ tokens, grants }: Status, present: number, columns: number): string {
  if (tokens === null || grants === null) return ''
  const sums = [
    counted(grants.length, 'grant'),
    counted(tokens.access, 'access token'),
    counted(tokens.refresh, 'refresh token'),
  ]
  return `${grantLines(grants, present, columns).join('\n')}\n\n${sums.join(', ')}\n`
}

/** The table of requests that outlive their grants; empty if there are none. */
function unfinishedLines(unfinished: readonly UnfinishedRequest[], present: number, columns: number): string {
  if (unfinished.length === 0) return ''
  const rows = unfinished.map(({ grant, client, startedAt }) => [grant, client, spanOf(present - startedAt)])
  const lines = tableOf(['GRANT', 'CLIENT', 'AGE'], rows, columns)
  const what = 'Uploads and downloads that go on after the end of their grant; postern revoke ends them:'
  return `\n${wrapped(what, 0, columns)}\n${lines.join('\n')}\n`
}

/** The label is last: if its script runs from right to left, it would reverse the order of cells after it. */
function grantLines(grants: readonly GrantSummary[], present: number, columns: number): readonly string[] {
  const isLabelled = grants.some(({ label = '' }) => label !== '')
  const rows = grants.map(({ id, client, label = '', issuedAt, expiresAt, usedAt, accessTokens }) => [
    id,
    client,
    spanOf(present - issuedAt),
    spanOf(expiresAt - present),
    typeof usedAt === 'number' ? spanOf(present - usedAt) : '-',
    String(accessTokens),
    ...(isLabelled ? [label] : []),
  ])
  const head = ['GRANT', 'CLIENT', 'AGE', 'EXPIRES', 'USED', 'TOKENS', ...(isLabelled ? ['LABEL'] : [])]
  return tableOf(head, rows, columns)
}

function placesLine(
  {
    route,
    used,
    limit,
    learned,
    triedAgainAt,
    wall = false,
    doubted = false,
    fleet = null,
    ceiling = null,
  }: Omit<PlacesCondition, 'wall' | 'doubted' | 'fleet' | 'ceiling'> & Partial<PlacesCondition>,
  present: number,
  columns: number,
): string {
  const how = learned ? ', learned' : ''
  const all = fleet === null ? '' : `; all sidecars share ${fleet}`
  const more = ceiling === null ? 'one more' : `more than ${ceiling}`
  const lifts = ', and may come again after postern retry'
  const why = doubted ? ', or something else did, as it was away with fewer, too' : ''
  const known = ceiling === null ? '' : `; no room for ${more}`
  const next = triedAgainAt === null ? '' : `; one more is tried in ${spanOf(triedAgainAt - present)}`
  const told = wall ? `; ${more} broke the device${why}${lifts}` : known
  return `${wrapped(`${route ?? 'device'}: ${used} of ${counted(limit, 'place')} in use${how}${all}${told}${next}`, 2, columns)}\n`
}

/** What the device has beside the places, and whether requests waited for places. */
function useLines(
  {
    used,
    limit,
    streams,
    tunnels,
    waits,
    ceiling = null,
  }: Pick<PlacesUse, 'used' | 'limit'> & Partial<PlacesUse>,
  present: number,
  columns: number,
): string {
  const lines: string[] = []
  if (streams !== undefined && tunnels !== undefined) {
    const [all, most] = [used + streams.used + tunnels.used, limit + streams.limit + tunnels.limit]
    const beside = `${streams.used} of ${counted(streams.limit, 'stream')} and ${tunnels.used} of ${counted(tunnels.limit, 'WebSocket')}`
    lines.push(`with ${beside}, ${all} of ${most} at once`)
  }
  if (waits !== undefined && waits.requests > 0) lines.push(waitsText(waits, ceiling !== null, present))
  return lines.map((line) => `  ${wrapped(line, 4, columns)}\n`).join('')
}

const DAY = 86_400_000
const HOUR = 3_600_000

/** @param isCeiling the device has shown that some number of requests at once is too many */
function waitsText(
  { since, requests, waited, refused, p99, matters, wouldDo }: WaitsCondition,
  isCeiling: boolean,
  present: number,
): string {
  const counted = present - since
  const when = `in the last ${counted > DAY - HOUR ? 'day' : spanOf(counted)}`
  if (waited === 0) return `${when} none of the requests waited`
  const long =
    p99 > 0 ? `, ${p99 < 1_000 ? `${Math.ceil(p99)} ms` : `${(p99 / 1_000).toFixed(1)} s`} at p99` : ''
  const lost = refused === 0 ? '' : `, ${percent(refused / requests)} were refused`
  const advice =
    wouldDo !== null
      ? `: max_in_flight: {max: ${wouldDo}} would do, if the device takes as many`
      : matters && isCeiling
        ? ': the device has shown that it has no room for more'
        : ''
  return `${when} ${percent(waited / requests)} of the requests waited${long}${lost}${advice}`
}

/** A share for people: `3 %`, `0.2 %`. */
function percent(share: number): string {
  const value = 100 * share
  if (value < 0.1) return 'less than 0.1 %'
  return `${value < 1 ? value.toFixed(1) : Math.round(value)} %`
}

const QUIRKS = {
  stray: 'bytes after a response',
  tolerant: 'malformed HTTP, read by the tolerant rules',
  delayed: 'a kept connection costs 40 ms a request',
} as const

function quirkLine({ route, kind, since, malformed }: RouteQuirk, present: number, columns: number): string {
  const shown =
    malformed === null ? '' : `; first in the response to ${malformed.request}: ${malformed.fault}`
  const bytes = malformed === null ? '' : `    ${malformed.bytes}\n`
  return `${wrapped(`${route ?? 'device'}: ${QUIRKS[kind]}, for ${spanOf(present - since)}${shown}`, 2, columns)}\n${bytes}`
}
