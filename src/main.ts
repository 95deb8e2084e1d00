#!/usr/bin/env node
import './node-version.cjs'
import { isUtf8 } from 'node:buffer'
import { resolve } from 'node:path'
import process from 'node:process'
import { isSea } from 'node:sea'
import type { DaemonIo, ProgramIo } from './commands/command.ts'
import { DEFAULT_CONFIG, DEFAULT_STATE, PAGES } from './commands/help.ts'
import { loadLog, openOutputs } from './commands/output.ts'
import { runProgram } from './commands/program.ts'
import { typedProgram } from './commands/typed-program.ts'
import { systemClock } from './system/clock.ts'
import { isJournal } from './system/journald.ts'
import type { PathFacts, PermissionedProcess } from './system/permissions.ts'
import { keepTicksFast } from './system/tick-objects.ts'

/** The words after the name of the program on the command line. In the single executable there is no script among them. */
const ARGUMENTS = isSea() ? process.argv.slice(2) : [...process.execArgv, ...process.argv.slice(1)]

/**
 * `serve` handles SIGHUP before its code is loaded: otherwise a reload of the service at that time ends the process. A restart for more
 * permissions may lose the signal, because the configuration is read after it.
 */
const onReload = process.argv[2] === 'serve' ? onSignals('SIGHUP') : undefined

const permissions: PermissionedProcess = {
  permission: process.permission,
  env: process.env,
  readOutside,
  lookOutside,
  restart: (env) => process.execve?.(process.execPath, [process.argv0, ...ARGUMENTS], env),
}

const io: ProgramIo = {
  ...openOutputs(),
  stdin: () => process.stdin,
  env: process.env,
  clock: systemClock,
  defaultConfig: DEFAULT_CONFIG,
  defaultState: DEFAULT_STATE,
  folder: workingDirectory(),
  user: process.getuid?.(),
  pages: PAGES,
  permissions,
  args: process.argv.slice(2),
  node: isSea() ? undefined : process.execPath,
  typed: typedProgram({
    argv0: process.argv0,
    script: isSea() ? undefined : process.argv[1],
    env: process.env,
  }),
  program: [
    process.execPath,
    ...(isSea() ? [] : [...process.execArgv.map(whole), ...process.argv.slice(1, 2)]),
  ],
  onSignals,
  daemon,
}

/** Undefined if it has been removed, which Node reports by an error. */
function workingDirectory(): string | undefined {
  try {
    return process.cwd()
  } catch {
    return undefined
  }
}

/** Makes a relative path absolute: that of `npm start` would not work in another folder. */
function whole(word: string): string {
  return /^\.\.?\//.test(word) ? resolve(word) : word
}

/** Reads a file with another program. Only a regular file: a pipe would be empty after the restart. Undefined if it cannot be read. */
function readOutside(path: string): string | undefined {
  return outputOf('[ -f "$1" ] && exec cat -- "$1"', path)
}

/** Looks at a path with another program. Undefined if there is no such path. */
function lookOutside(path: string): PathFacts | undefined {
  const script = 'stat -c "%u %g %f" -- "$1" && if [ -L "$1" ]; then readlink -- "$1"; fi'
  const [, uid, gid, mode, link] =
    /^(\d+) (\d+) ([\da-f]+)\n(?:(.*)\n)?$/s.exec(outputOf(script, path) ?? '') ?? []
  return mode === undefined
    ? undefined
    : { uid: Number(uid), gid: Number(gid), mode: Number(`0x${mode}`), link }
}

/** What a shell command writes about a path; undefined if it fails or writes no text. */
function outputOf(script: string, path: string): string | undefined {
  // Node's module is loaded here, because no other start needs it.
  const { spawnSync } = process.getBuiltinModule('node:child_process')
  const { status, stdout } = spawnSync('/bin/sh', ['-c', script, 'sh', path], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return status === 0 && isUtf8(stdout) ? new TextDecoder().decode(stdout) : undefined
}

function daemon(): DaemonIo {
  keepTicksFast()
  const sink = { terminal: io.stdout.isTTY, fd: 1, journal: isJournal(1, process.env) }
  return {
    ...io,
    openLog: (settings) => loadLog(settings, sink),
    onStop: onSignals('SIGTERM', 'SIGINT'),
    onReload: onReload ?? onSignals('SIGHUP'),
    onCrash: (listener) => process.on('uncaughtException', listener),
  }
}

/** Handles these signals from now on. A signal that arrives before the first listener is added is delivered to it. */
function onSignals(...signals: readonly NodeJS.Signals[]): (listener: () => void) => void {
  const listeners: (() => void)[] = []
  let missed = 0
  for (const signal of signals) {
    process.on(signal, () => {
      if (listeners.length === 0) missed += 1
      for (const listener of listeners) listener()
    })
  }
  return (listener) => {
    listeners.push(listener)
    for (; missed > 0; missed -= 1) listener()
  }
}

// Exits at once, without waiting for remaining timers and connections.
runProgram(io).then((code) => process.exit(code))
