import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { PlacesCondition } from '../../src/admin/control-socket.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { connect, send } from '../support/client.ts'
import { type MovableClock, passUntil } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { BUNDLE_VARIABLE } from '../support/made-once.ts'
import type { Connection, Response } from '../support/message.ts'
import {
  type ApiRequest,
  encodeForm,
  type FormBody,
  MANY_PLACES,
  overlay,
  PASSWORD,
  PATIENT_QUEUE,
  type Tokens,
  type YamlPart,
} from '../support/sidecar.ts'
import type { Transport } from '../support/transports.ts'
import { begin, impatientClock, runInProcess } from './in-process.ts'
import type { OtherBounds } from './other-bounds.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const bundle = process.env[BUNDLE_VARIABLE]
const SOURCE = join(REPOSITORY, 'src', 'main.ts')
/** The program: the bundle in a test, otherwise the source. */
export const MAIN: string = bundle === undefined ? SOURCE : join(bundle, 'dist', 'postern.mjs')

/**
 * The environment of the program. It has no other variable of the test, because a POSTERN_ variable would take effect. An empty
 * `POSTERN_CONFIG` keeps the program from reading the configuration in `/etc` of this machine.
 */
export const ENV: Readonly<Record<string, string>> = {
  PATH: process.env.PATH ?? '',
  POSTERN_CONFIG: '',
  NODE_COMPILE_CACHE: join(REPOSITORY, 'node_modules', '.cache', 'postern-process'),
}

/** A line of the log, parsed. */
export type LogLine = { readonly msg: string; readonly level: number } & Readonly<Record<string, unknown>>

/** How a process ended: one of the two fields is null. */
interface Exit {
  readonly code: number | null
  readonly signal: string | null
}

/** A program that ran to its end. */
export interface Run extends Exit {
  readonly stdout: string
  readonly stderr: string
}

/** The output of `postern status --json`. */
export interface Status {
  readonly tokens: { readonly access: number; readonly refresh: number }
  readonly grants: readonly {
    readonly id: string
    readonly client: string
    readonly issuedAt: number
    readonly expiresAt: number
    readonly accessTokens: number
  }[]
  readonly places: readonly PlacesCondition[]
}

/** `postern serve` that was started. */
export interface Started {
  /** The log so far. */
  readonly log: readonly LogLine[]
  /** The lines on standard output so far, unparsed, and all of standard error when the command has ended. */
  readonly lines: readonly string[]
  readonly stderr: Promise<string>
  /** Waits for a line with the text `msg` for which `fields` holds; rejects when the command ends without one. */
  waitForLog(msg: string, fields?: (line: LogLine) => boolean): Promise<LogLine>
  logged(msg: string): readonly LogLine[]
  signal(name: NodeJS.Signals): void
  readonly exit: Promise<Exit>
  /** Sends SIGTERM and waits for the exit. */
  stop(): Promise<Exit>
}

/** A process of `postern serve`. It is killed when the test ends. */
export interface Launched extends Started {
  readonly pid: number
  /** `kill -9`. */
  kill(): Promise<void>
}

/** A client of the public, admin and control interfaces of a sidecar. */
export interface Client {
  readonly url: string
  readonly adminUrl: string
  request(request?: ApiRequest): Promise<Response>
  connect(options?: { readonly from?: string }): Promise<Connection>
  postToken(form: FormBody, request?: ApiRequest): Promise<Response>
  login(password?: string): Promise<Response>
  grant(password?: string): Promise<Tokens>
  refresh(refreshToken: string): Promise<Response>
  /** The status of the response to a request with this token. */
  use(accessToken: string): Promise<number>
  /** The sum of the samples of a metric whose line contains each of `labels`, such as `reason="operator"`. */
  metric(name: string, ...labels: string[]): Promise<number>
  /** The status of `/readyz`. */
  ready(): Promise<number>
  /** Reads `/status` on the control socket directly, without starting `postern status`. */
  status(): Promise<Status>
  revoke(which: object): Promise<void>
}

/** A process of `postern serve` that listens. */
export type Served = Launched & Client

/** A `postern serve` that listens, be it in this process. */
export type Serving = Started & Client

/** The surroundings of a sidecar, which survive its restarts: folder, configuration, password and device. */
export interface Site {
  readonly device: Device
  readonly directory: string
  readonly stateDir: string
  readonly passwordFile: string
  readonly configFile: string
  /** Changes keys of the configuration and replaces the file; `undefined` removes a key. */
  configure(part: YamlPart): void
  /** Replaces the password file. */
  setPassword(content: string): void
  /**
   * Starts `postern serve` in this process, for a fifth of the processor time, and waits until it listens. It has the real clock, unless it is
   * given another one. It stops when the test ends.
   */
  serveHere(options?: { readonly clock: MovableClock }): Promise<Serving>
  /** Starts a process of `postern serve` and waits until it listens: for what a process decides, such as `kill -9`, memory and permissions. */
  serve(options?: ServeOptions): Promise<Served>
  /** Starts a process of `postern serve` without waiting. */
  launch(options?: ServeOptions): Launched
  /** Runs `postern COMMAND --config …` in this process to its end. */
  postern(command: string, ...args: string[]): Promise<Run>
}

export interface ServeOptions {
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>
  /** What the process has in place of its constants. It starts from the source then, because a bundle keeps its own. */
  readonly bounds?: OtherBounds
  /** A program and arguments to put in front of Node. */
  readonly under?: readonly string[]
}

export interface SiteOptions {
  readonly config?: YamlPart
  readonly device?: Pick<Device, 'url'>
  /** Default: cleartext. */
  readonly transport?: Transport
  /** The line in the password file. */
  readonly password?: string
  /** The command that starts the program instead of Node with the bundle. It gets the folders of configuration and state. */
  readonly command?: (configuration: string, state: string) => readonly string[]
}

/** Replaces a file atomically, by renaming. */
export function replaceFile(file: string, content: string): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Makes a folder with a configuration, and a device. The default rate limits are too high to be reached. */
export async function prepareSite(options: SiteOptions = {}): Promise<Site> {
  const transport = options.transport ?? 'http1'
  const device = options.device ?? (await startDevice())
  const directory = temporaryDirectory()
  const [passwordFile, stateDir, configFile] = ['password', 'state', 'postern.yaml'].map((name) =>
    join(directory, name),
  ) as [string, string, string]
  writeFileSync(passwordFile, `${options.password ?? PASSWORD}\n`, { mode: 0o600 })
  const certificate = transport === 'http1' ? undefined : await makeCertificate()
  let yaml = overlay(
    {
      listen: {
        address: '127.0.0.1:0',
        tls: certificate === undefined ? 'off' : { cert: certificate.certFile, key: certificate.keyFile },
      },
      admin: { address: '127.0.0.1:0' },
      upstream: { url: device.url, max_in_flight: MANY_PLACES, queue: PATIENT_QUEUE },
      password: { file: passwordFile },
      limits: { api: { requests: 1_000_000 }, oauth: { requests: 1_000_000 } },
      state_dir: stateDir,
      log: { format: 'json' },
    },
    options.config ?? {},
  )
  replaceFile(configFile, JSON.stringify(yaml)) // JSON is YAML

  const command = options.command?.(directory, stateDir) ?? [process.execPath, MAIN]
  function launchHere({ under = [], env = {}, bounds }: ServeOptions = {}): Launched {
    const program = bounds === undefined ? command : [process.execPath, bounds, SOURCE]
    return launch([...under, ...program, 'serve', '--config', configFile], { ...ENV, ...env })
  }

  return {
    device: device as Device, // a test that passes only a URL does not use `site.device`
    directory,
    stateDir,
    passwordFile,
    configFile,
    configure(part) {
      yaml = overlay(yaml, part)
      replaceFile(configFile, JSON.stringify(yaml))
    },
    setPassword: (content) => replaceFile(passwordFile, content),
    async serveHere(options) {
      const started = startHere(['serve', '--config', configFile], options?.clock)
      const { public: url, admin } = await started.waitForLog('listening')
      return { ...started, ...clientOf(String(url), String(admin), transport, stateDir) }
    },
    async serve(options) {
      const launched = launchHere(options)
      const { public: url, admin } = await launched.waitForLog('listening')
      return { ...launched, ...clientOf(String(url), String(admin), transport, stateDir) }
    },
    launch: launchHere,
    postern: (command, ...args) => runInProcess([command, '--config', configFile, ...args]),
  }
}

/** Runs `postern ARGS` to its end. `main` is the program; `under` is a program and arguments to put in front of Node. */
export async function runPostern(
  args: readonly string[],
  { main = MAIN, under = [] }: { readonly main?: string; readonly under?: readonly string[] } = {},
): Promise<Run> {
  const [program = '', ...rest] = [...under, process.execPath, main, ...args]
  const child = spawn(program, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: ENV,
  })
  const ended = endOf(child)
  const [stdout, stderr, exit] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { stdout, stderr, ...exit }
}

function endOf(child: ChildProcess): Promise<Exit> {
  const ended = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  closeLater(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  })
  return ended
}

function launch([program = '', ...args]: readonly string[], env: Readonly<Record<string, string>>): Launched {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  const exit = endOf(child)
  const stderr = text(child.stderr)
  const { log, lines, logged, waitForLog } = readLog(child, stderr)
  return {
    pid: child.pid ?? 0,
    log,
    lines,
    logged,
    waitForLog,
    stderr,
    signal: (name) => child.kill(name),
    exit,
    async kill() {
      child.kill('SIGKILL')
      await exit
    },
    stop() {
      child.kill('SIGTERM')
      return exit
    },
  }
}

/** Starts `postern serve` in this process. */
function startHere(args: readonly string[], clock?: MovableClock): Started {
  const impatience = new AbortController()
  const { news, signal, ended } = begin(args, { clock: clock ?? impatientClock(impatience.signal) })
  const stderr = ended.then((run) => run.stderr)
  const reader = createLogReader(stderr)
  // The log writes each line whole.
  news.on('stdout', (line: string) => reader.read(line.trimEnd()))
  let isOver = false
  const exit = ended.then(({ code }) => {
    isOver = true
    reader.end()
    return { code, signal: null }
  })
  async function stop(): Promise<Exit> {
    if (!isOver) signal('SIGTERM')
    return exit
  }
  closeLater(async () => {
    const stopped = stop()
    // What it would still wait for is over at once.
    impatience.abort()
    await (clock === undefined ? stopped : passUntil(clock, stopped))
  })
  const { log, lines, logged, waitForLog } = reader
  return { log, lines, logged, waitForLog, stderr, signal, exit, stop }
}

/** Reads the log of a process as it is written. */
export function readLog(child: ChildProcess, stderr: Promise<string>): LogReader {
  const reader = createLogReader(stderr)
  if (child.stdout === null) throw new Error('the log is not piped')
  createInterface(child.stdout).on('line', reader.read).once('close', reader.end)
  return reader
}

type LogReader = Pick<Started, 'log' | 'lines' | 'logged' | 'waitForLog'>

/** Keeps the lines of a log. @param stderr what to tell where the log ends without an awaited line */
function createLogReader(
  stderr: Promise<string>,
): LogReader & { readonly read: (line: string) => void; readonly end: () => void } {
  const log: LogLine[] = []
  const lines: string[] = []
  const news = new EventEmitter().setMaxListeners(0)
  let over = false
  return {
    log,
    lines,
    logged: (msg) => log.filter((line) => line.msg === msg),
    read(line) {
      lines.push(line)
      if (line.startsWith('{')) log.push(JSON.parse(line))
      news.emit('news')
    },
    end() {
      over = true
      news.emit('news')
    },
    async waitForLog(msg, fields = () => true) {
      for (;;) {
        const line = log.find((each) => each.msg === msg && fields(each))
        if (line !== undefined) return line
        if (over) throw new Error(`ended without "${msg}": ${lines.join('\n')}\n${await stderr}`)
        await once(news, 'news')
      }
    },
  }
}

/** A client of any running sidecar. */
export function clientOf(url: string, adminUrl: string, transport: Transport, stateDir: string): Client {
  const target = { transport, url }
  const admin = (path: string): Promise<Response> => send({ transport: 'http1', url: adminUrl, path })
  const self: Client = {
    url,
    adminUrl,
    request({ token, fields = [], ...request } = {}) {
      const authorization = token === undefined ? [] : ['Authorization', `Bearer ${token}`]
      return send({ ...target, ...request, fields: [...authorization, ...fields] })
    },
    connect: ({ from } = {}) => connect({ ...target, ...(from === undefined ? {} : { from }) }),
    postToken: (form, { fields = [], ...request } = {}) =>
      self.request({
        method: 'POST',
        path: '/oauth/token',
        body: encodeForm(form),
        ...request,
        fields: ['Content-Type', 'application/x-www-form-urlencoded', ...fields],
      }),
    login: (password = PASSWORD) => self.postToken({ grant_type: 'password', password }),
    grant: async (password) => tokensOf(await self.login(password)),
    refresh: (token) => self.postToken({ grant_type: 'refresh_token', refresh_token: token }),
    use: async (token) => (await self.request({ token })).status,
    async metric(name, ...labels) {
      const lines = (await admin('/metrics')).text.split('\n')
      const samples = lines.filter(
        (line) => /^\w+/.exec(line)?.[0] === name && labels.every((label) => line.includes(label)),
      )
      return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
    },
    ready: async () => (await admin('/readyz')).status,
    status: async () => JSON.parse(await control(stateDir, 'GET', '/status')),
    async revoke(which) {
      await control(stateDir, 'POST', '/revoke', JSON.stringify(which))
    },
  }
  return self
}

/** The tokens of a response; fails unless its status is 200. */
export function tokensOf(response: Response): Tokens {
  if (response.status !== 200) throw new Error(`no tokens: ${response.status} ${response.text}`)
  return response.json() as unknown as Tokens // the tests of C4 check the members
}

async function control(stateDir: string, method: string, path: string, body?: string): Promise<string> {
  const request = httpRequest({
    socketPath: join(stateDir, 'control.sock'),
    method,
    path,
    agent: false,
  })
  const responded = once(request, 'response')
  request.end(body)
  const [response] = await responded
  return text(response)
}
