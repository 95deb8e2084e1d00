import { createReadStream } from 'node:fs'
import { isSafe } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import { explainPathError } from '../system/named-file.ts'
import { SetupError } from '../system/setup-error.ts'
import { columnsOf, fitted, WIDTH, wrapped } from './columns.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { configFrom, configPath } from './configuration.ts'
import type { Output } from './output.ts'
import type { Terminal } from './prompt.ts'
import {
  knownPart,
  LEFT_OUT,
  type LeftOut,
  type LoggedRequest,
  leftOut,
  readLogLine,
} from './propose/access-line.ts'
import { readLines } from './propose/line-reader.ts'
import { addTo, createPathTree, MOST_NODES, type PathTree, type Seen } from './propose/path-tree.ts'
import { proposalOf } from './propose/proposal.ts'
import { type Usage, usageOf } from './propose/unused.ts'
import { timeOf } from './times.ts'

export interface ProposeOptions {
  /** Only requests of this name. */
  readonly name?: string
  /** Only requests that are not older (ms). */
  readonly since?: number
  /** The configuration whose `allow` is compared with the requests, or the instance that has it. */
  readonly config?: string
  readonly instance?: string
}

export interface ProposeIo extends Pick<CommandIo, 'env' | 'defaultConfig' | 'defaultState'> {
  readonly stdout: CommandIo['stdout']
  readonly stderr: Pick<Output, 'write' | 'isTTY'>
  /** A function, because Node opens standard input at the first look. */
  readonly stdin: () => Terminal['stdin']
  readonly clock: Clock
}

/** A request that is left out for one of these reasons has used its entry of `allow` nevertheless. */
const USED: ReadonlySet<LeftOut> = new Set(['unanswered', 'cut', 'changed', 'unnamable', 'root', 'crowded'])

/** How many names of a log are told apart, and how many requests of each kind that is left out are shown. */
const MOST_NAMES = 64
const SHOWN = 3

/** How often the progress is told on a terminal (ms). */
const PROGRESS = 5_000

/**
 * `postern propose`: reads the lines of access logs from files, or from standard input, and prints the `allow` that fits the requests in
 * them. Needs no sidecar. Rejects with exit code 1 if no request belongs in it, 2 if a file or the configuration cannot be used.
 */
export async function proposeCommand(
  files: readonly string[],
  options: ProposeOptions,
  io: ProposeIo,
): Promise<ExitCode> {
  const isNamed = options.config !== undefined || options.instance !== undefined
  const configured = isNamed ? allowIn(options, io) : undefined
  const name = options.name ?? configured?.name
  const since = options.since === undefined ? Number.NEGATIVE_INFINITY : io.clock.wall() - options.since
  const survey = createSurvey({ name, since, usage: configured?.usage })
  await readAll(files, survey.take, io)
  for (const warning of survey.warnings(configured?.access))
    io.stderr.write(`${wrapped(`postern propose: ${warning}`, 0, columnsOf(io.stderr))}\n`)
  const names = survey.names()
  if (name === undefined && names.length > 1)
    throw new SetupError(`the log has requests of several names: ${names.join(', ')}; choose one with --name`)
  const { seen, trees, out } = survey
  const comments = [...out].map(
    ([why, { count, shown }]) =>
      `Left out: ${count} ${LEFT_OUT[why]}${shown.length === 0 ? '' : `, such as ${shown.join(' ')}`}`,
  )
  if (seen.count === 0)
    throw new SetupError([`no request belongs in an allow${ofName(name)}`, ...comments], { exitCode: 1 })
  const from = `From ${requests(seen.count)}${ofName(name)}, ${timeOf(survey.first())} to ${timeOf(seen.last)}.`
  const all = [from, ...comments, ...(configured?.report() ?? [])]
  io.stdout.write(
    all.map((line) => `    # ${wrapped(line, 8, WIDTH).replaceAll(/\n */g, '\n    #   ')}\n`).join(''),
  )
  io.stdout.write(proposalOf(trees))
  return 0
}

const requests = (count: number): string => `${count} ${count === 1 ? 'request' : 'requests'}`

const ofName = (name: string | undefined): string => (name === undefined ? '' : ` of ${name}`)

interface Kept {
  count: number
  readonly shown: string[]
}

/** Collects what the lines say. What it holds is bounded, however many and whatever lines there are. */
function createSurvey({
  name,
  since,
  usage,
}: {
  readonly name: string | undefined
  readonly since: number
  readonly usage: Usage | undefined
}) {
  const budget = { left: MOST_NODES }
  const trees = new Map<string, PathTree>()
  const seen: Seen = { count: 0, last: 0 }
  let first = Number.POSITIVE_INFINITY
  const out = new Map<LeftOut, Kept>()
  const names = new Map<string, number>()
  const lines = { foreign: 0, own: 0, other: 0, requests: 0, reads: 0, dropped: 0, overrides: 0, moves: 0 }

  function takeRequest(request: LoggedRequest): void {
    const { method, path, time } = request
    lines.requests += 1
    if (isSafe(method)) lines.reads += 1
    if (time >= since && request.name !== undefined && (names.has(request.name) || names.size < MOST_NAMES))
      names.set(request.name, (names.get(request.name) ?? 0) + 1)
    if (name !== undefined && request.name !== name) return
    const why = leftOut(request, since) ?? (treeOf(method).add(path, time) ? undefined : 'crowded')
    if (why === undefined || USED.has(why)) usage?.mark(method, knownPart(path))
    if (why !== undefined) {
      leave(why, request)
      return
    }
    if (request.hasOverride) lines.overrides += 1
    if (method === 'MOVE' || method === 'COPY') lines.moves += 1
    addTo(seen, 1, time)
    first = Math.min(first, time)
  }

  function treeOf(method: string): PathTree {
    const known = trees.get(method)
    if (known !== undefined) return known
    const tree = createPathTree(budget)
    trees.set(method, tree)
    return tree
  }

  function leave(why: LeftOut, { method, path }: LoggedRequest): void {
    const kept = out.get(why) ?? { count: 0, shown: [] }
    out.set(why, kept)
    kept.count += 1
    const shown = `${printable(method)} ${printable(path)}`
    if (why !== 'old' && kept.shown.length < SHOWN && !kept.shown.includes(shown)) kept.shown.push(shown)
  }

  return {
    take(line: string): void {
      const found = readLogLine(line)
      if (typeof found === 'object') takeRequest(found)
      else if (found === 'lines-dropped') lines.dropped += 1
      else if (found === 'foreign') lines.foreign += 1
      else if (found === 'own-endpoint') lines.own += 1
      else lines.other += 1
    },
    seen,
    first: () => first,
    trees,
    out,
    /** The names of the requests, with their numbers. */
    names: (): readonly string[] =>
      [...names].map(([each, count]) => `${each === '' ? 'no name' : each} (${requests(count)})`),
    /** @param access `log.access` of the configuration, if one is given */
    *warnings(access: unknown): Generator<string> {
      if (access !== undefined && access !== true)
        yield `log.access is ${access}, so the log lacks requests; set it to true, and wait until clients have done all that they do`
      else if (lines.requests + lines.own === 0 && lines.other > 0)
        yield 'the log has lines of Postern, but none of a request: log.access is false, or log.level above info'
      else if (lines.requests > 0 && lines.reads === 0)
        yield 'the log has no GET and no HEAD: if log.access is changes, it has only what may change something, and the proposal refuses all reads'
      if (lines.requests + lines.own + lines.other === 0 && lines.foreign > 0)
        yield `none of ${lines.foreign} lines is a line of Postern in JSON (log.format: json); use journalctl -o cat, and zcat for a .gz file`
      if (lines.dropped > 0) yield 'Postern has dropped lines of this log: requests are missing'
      if (lines.overrides > 0)
        yield `${requests(lines.overrides)} with a field that names another request, which will not reach the device: see docs/hardening.md`
      if (lines.moves > 0)
        yield 'MOVE and COPY also need the path of their Destination, which the log does not have; add it to their paths'
    },
  }
}

/** A path that is left out is shown up to this length. */
const LONGEST_SHOWN = 100

/** Text of a log in printable ASCII without a line end, so that it can neither leave its comment nor control a terminal. */
function printable(text: string): string {
  const short = text.slice(0, LONGEST_SHOWN)
  return /^[!-~]*$/.test(short) ? short : JSON.stringify(short).replaceAll(/[^ -~]/g, '?')
}

async function readAll(
  files: readonly string[],
  take: (line: string) => void,
  { stdin, stderr, clock }: ProposeIo,
): Promise<void> {
  let bytes = 0
  let told = clock.monotonic()
  const onRead = (read: number): void => {
    bytes += read
    if (!stderr.isTTY || clock.monotonic() - told < PROGRESS) return
    told = clock.monotonic()
    stderr.write(`postern propose: ${Math.round(bytes / 1_000_000)} MB read\n`)
  }
  for (const file of files.length === 0 ? ['-'] : files) {
    if (file !== '-') {
      await readLines(createReadStream(file), take, onRead).catch((error: unknown) => {
        const { reason, remedy } = explainPathError(error, file)
        throw new SetupError(`${file}: ${reason}`, { remedy, cause: error })
      })
      continue
    }
    const input = stdin()
    if (input.isTTY === true)
      stderr.write(
        fitted('postern propose: reads a log from standard input, until Ctrl-D; --help shows how\n'),
      )
    await readLines(input, take, onRead)
  }
}

/** The present `allow` of the name, and what follows from the configuration. */
function allowIn({ name, ...file }: ProposeOptions, io: ProposeIo) {
  const { passwords = [], log } = configFrom({ ...file, set: [] }, io)
  const [config, flag] = [configPath(file, io), file.instance === undefined ? '--config' : '--instance']
  const entry =
    name === undefined && passwords.length === 1 ? passwords[0] : passwords.find((each) => each.name === name)
  if (entry === undefined) {
    const known = passwords.map((each) => each.name).join(', ')
    throw new SetupError(
      passwords.length === 0
        ? `${config} has no passwords, and allow belongs to one of them; leave out ${flag}`
        : name === undefined
          ? `${flag} needs --name, one of ${known}`
          : `${config} has no such name in passwords; it has ${known}`,
    )
  }
  const usage = entry.allow === undefined ? undefined : usageOf(entry.allow)
  return {
    name: entry.name,
    access: log.access,
    usage,
    report(): readonly string[] {
      if (usage === undefined) return [`${entry.name} has no allow today: it may do everything.`]
      const unused = usage.unused()
      if (unused.length === 0) return ['All of the present allow was used.']
      return ['Of the present allow, no request used:', ...unused]
    },
  }
}
