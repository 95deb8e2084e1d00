import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, vi } from 'vitest'
import type { DaemonIo, ProgramIo } from '../../src/commands/command.ts'
import { DEFAULT_CONFIG } from '../../src/commands/help.ts'
import { runProgram } from '../../src/commands/program.ts'
import { openLogOn } from '../../src/record/log.ts'
import { type Clock, systemClock } from '../../src/system/clock.ts'
import type { Session, Turn } from '../support/terminal.ts'
import { ENV, MAIN, type Run } from './serve.ts'

/** What a command finds around it. */
export interface Surroundings
  extends Partial<
    Pick<
      ProgramIo,
      'clock' | 'env' | 'defaultConfig' | 'defaultState' | 'folder' | 'user' | 'systemd' | 'pages' | 'typed'
    >
  > {
  /** What standard input has, or the stream itself; default: nothing. */
  readonly stdin?: string | Uint8Array | ReturnType<ProgramIo['stdin']>
  /** Standard output and standard error are a terminal of 80 columns. */
  readonly terminal?: boolean
  /** Why each text that the command writes to standard output is lost, such as a full disk. */
  readonly lost?: Error
}

/** A command that was begun. */
export interface Begun {
  /** What it has written so far; `screen` is both outputs as a terminal shows them. */
  readonly written: Pick<Run, 'stdout' | 'stderr'> & Pick<Session, 'screen'>
  /** Emits `stdout` or `stderr` with each text. */
  readonly news: EventEmitter
  /** Sends it a signal. Throws where the command does not handle it, because it would end a process. */
  readonly signal: (name: NodeJS.Signals) => void
  readonly ended: Promise<Run>
}

/** Runs `postern ARGS` in this process to its end. See `begin`. */
export function runInProcess(args: readonly string[], surroundings?: Surroundings): Promise<Run> {
  return begin(args, surroundings).ended
}

/**
 * Begins `postern ARGS` in this process: what a command reads, says and does, without the 0.15 s of processor time that a start of the
 * program takes. What the process itself does, its outputs, signals, memory, permissions and end, takes `runPostern`, `site.serve` or a terminal of
 * `runOnTerminal`.
 */
export function begin(args: readonly string[], surroundings: Surroundings = {}): Begun {
  const { stdin = '', terminal: isTTY = false, lost, ...places } = surroundings
  const written = { stdout: '', stderr: '', screen: '' }
  const news = new EventEmitter().setMaxListeners(0)
  const signals = new EventEmitter()
  let failure: unknown
  const losses: ((error: unknown) => void)[] = []

  function write(name: 'stdout' | 'stderr', text: string): void {
    if (name === 'stdout' && lost !== undefined) {
      if (failure !== undefined) return
      failure = lost
      for (const listener of losses) listener(lost)
      return
    }
    written[name] += text
    written.screen += text
    news.emit(name, text)
  }
  const output = (name: 'stdout' | 'stderr') => ({
    isTTY,
    // As UTF-8: what has to arrive byte for byte takes a process of its own.
    write: (data: string | Uint8Array) => write(name, Buffer.from(data).toString()),
  })
  const onSignals: ProgramIo['onSignals'] =
    (...names) =>
    (listener) => {
      for (const name of names) signals.on(name, listener)
    }
  const unused = () => expect.fail('without permissions there is nothing to restart')
  const io: ProgramIo = {
    stdout: output('stdout'),
    stderr: output('stderr'),
    onLostOutput: (call) => (failure === undefined ? void losses.push(call) : call(failure)),
    lostOutput: () => failure,
    stdin: () =>
      typeof stdin === 'string' || stdin instanceof Uint8Array ? new PassThrough().end(stdin) : stdin,
    env: ENV,
    clock: systemClock,
    defaultConfig: DEFAULT_CONFIG,
    ...places,
    permissions: {
      permission: undefined,
      env: ENV,
      readOutside: unused,
      lookOutside: unused,
      restart: unused,
    },
    args,
    node: process.execPath,
    typed: places.typed ?? 'postern',
    program: [process.execPath, MAIN],
    onSignals,
    daemon: (): DaemonIo => ({
      ...io,
      openLog: async ({ level }) => openLogOn(level, { write: (line) => write('stdout', line) }),
      onStop: onSignals('SIGTERM', 'SIGINT'),
      onReload: onSignals('SIGHUP'),
      onCrash: () => {},
    }),
  }
  return {
    written,
    news,
    signal(name) {
      if (!signals.emit(name)) throw new Error(`${args[0]} does not handle ${name}`)
    },
    ended: runProgram(io).then((code) => ({
      code,
      signal: null,
      stdout: written.stdout,
      stderr: written.stderr,
    })),
  }
}

/** The real clock, until the signal aborts: from then on nothing is waited for. */
export function impatientClock(over: AbortSignal): Clock {
  return {
    ...systemClock,
    pause: (time, signal) =>
      systemClock.pause(time, signal === undefined ? over : AbortSignal.any([signal, over])),
  }
}

/**
 * Runs `postern ARGS` in this process at a terminal, where a person types each answer when its question is shown. Throws if a question never was.
 * What the kernel does at a terminal takes `runOnTerminal`.
 */
export async function runAtKeyboard(args: readonly string[], ...dialogue: readonly Turn[]): Promise<Session> {
  const keys = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} })
  // Node's readline looks there whether the terminal has a cursor to move.
  vi.stubEnv('TERM', 'dumb')
  const { written, news, ended } = begin(args, { stdin: keys, terminal: true })
  const turns = [...dialogue]
  let read = 0
  function look(): void {
    const [shown, typed] = turns[0] ?? []
    const at = shown === undefined ? -1 : written.screen.indexOf(shown, read)
    if (at < 0 || shown === undefined || typed === undefined) return
    read = at + shown.length
    turns.shift()
    void Promise.resolve(typeof typed === 'function' ? typed() : typed).then((text) => {
      keys.write(text)
      look()
    })
  }
  news.on('stdout', look).on('stderr', look)
  const { code } = await ended.finally(() => vi.unstubAllEnvs())
  if (turns.length > 0) throw new Error(`"${turns[0]?.[0]}" was never shown:\n${written.screen}`)
  return { code: code ?? 0, screen: written.screen }
}
