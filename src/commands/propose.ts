import { createReadStream } from 'node:fs'
import type { Clock } from '../system/clock.ts'
import { explainPathError } from '../system/named-file.ts'
import { SetupError } from '../system/setup-error.ts'
import { columnsOf, fitted, WIDTH, wrapped } from './columns.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { configFrom, configPath } from './configuration.ts'
import type { Output } from './output.ts'
import type { Terminal } from './prompt.ts'
import { readLines } from './propose/line-reader.ts'
import { proposalOf, rulesFor } from './propose/proposal.ts'
import { createSurvey, requests } from './propose/survey.ts'
import { usageOf } from './propose/unused.ts'
import { proposalWarnings } from './propose/warnings.ts'
import { timeText } from './times.ts'

export interface ProposeOptions {
  /** Only requests of this name. */
  readonly name?: string
  /** Only requests that are at most this old (ms). */
  readonly since?: number
  /** The configuration whose `allow` is compared with the requests, or the instance that has it. */
  readonly config?: string
  readonly instance?: string
}

interface ProposeIo extends Pick<CommandIo, 'env' | 'defaultConfig' | 'defaultState'> {
  readonly stdout: CommandIo['stdout']
  readonly stderr: Pick<Output, 'write' | 'isTTY'>
  /** A function, because Node opens standard input at the first look. */
  readonly stdin: () => Terminal['stdin']
  readonly clock: Clock
}

/** How often the progress is shown on a terminal (ms). */
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
  for (const warning of proposalWarnings({ ...survey.counts, access: configured?.access }))
    io.stderr.write(`${wrapped(`postern propose: ${warning}`, 0, columnsOf(io.stderr))}\n`)
  const names = survey.names()
  if (name === undefined && names.length > 1)
    throw new SetupError(`the log has requests of several names: ${names.join(', ')}; choose one with --name`)
  const { seen, trees } = survey
  const comments = survey.leftOut()
  if (seen.count === 0)
    throw new SetupError([`no request belongs in an allow${ofName(name)}`, ...comments], { exitCode: 1 })
  const from = `From ${requests(seen.count)}${ofName(name)}, ${timeText(survey.first())} to ${timeText(seen.last)}.`
  const all = [from, ...comments, ...(configured?.report() ?? [])]
  io.stdout.write(
    all.map((line) => `    # ${wrapped(line, 8, WIDTH).replaceAll(/\n */g, '\n    #   ')}\n`).join(''),
  )
  io.stdout.write(proposalOf(rulesFor(trees)))
  return 0
}

const ofName = (name: string | undefined): string => (name === undefined ? '' : ` of ${name}`)

async function readAll(
  files: readonly string[],
  take: (line: string) => void,
  { stdin, stderr, clock }: ProposeIo,
): Promise<void> {
  let bytes = 0
  let shownAt = clock.monotonic()
  const onRead = (read: number): void => {
    bytes += read
    if (!stderr.isTTY || clock.monotonic() - shownAt < PROGRESS) return
    shownAt = clock.monotonic()
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

/** The present `allow` of the name, and `log.access`, from the configuration. `report`: comments about the present `allow`. */
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
