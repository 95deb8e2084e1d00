import type { Stats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { dirname } from 'node:path'
import type { Clock } from '../system/clock.ts'
import { explainPathError, type Fault } from '../system/named-file.ts'
import { type Look, otherWriters } from '../system/other-writers.ts'
import { codeOf, isBug, reasonOf, SetupError } from '../system/setup-error.ts'
import { HOOK_DEADLINE, type Hook, type HookAnswer } from './hook.ts'

/** The longest answer (bytes). */
const LONGEST_ANSWER = 1024

/** Rejects with a `SetupError` if passwords must not be sent to the socket. */
export async function requireHook(path: string, look?: Look): Promise<void> {
  const fault = await placeFault(path, look)
  if (fault === undefined) return
  throw new SetupError(`${path}: ${fault.reason}`, { key: 'password.socket', remedy: fault.remedy })
}

/**
 * The hook at a Unix socket. Each question is one line of JSON on a connection of its own. The answer is all that the program sends until
 * it closes the connection.
 */
export function createHookSocket(path: string, clock: Pick<Clock, 'after'>): Hook {
  const open = new Set<Socket>()
  return {
    where: path,
    ready: () => requireHook(path),
    async ask(question) {
      const fault = await placeFault(path)
      if (fault !== undefined) return { failed: fault.reason }
      return exchange(path, `${JSON.stringify(question)}\n`, clock, open)
    },
    close() {
      for (const socket of open) socket.destroy()
    },
  }
}

function exchange(
  path: string,
  line: string,
  clock: Pick<Clock, 'after'>,
  open: Set<Socket>,
): Promise<HookAnswer> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    open.add(socket)
    let received = ''
    const end = (answer: HookAnswer): void => {
      timer.cancel()
      open.delete(socket)
      socket.destroy()
      resolve(answer)
    }
    const timer = clock.after(HOOK_DEADLINE, () => {
      const missing = received === '' ? 'give an answer' : 'close the connection after its answer'
      end({ failed: `it did not ${missing} within ${HOOK_DEADLINE / 1000} s` })
    })
    socket
      .setEncoding('latin1')
      .on('data', (piece: string) => {
        received += piece
        if (received.length > LONGEST_ANSWER)
          end({ failed: `its answer is longer than ${LONGEST_ANSWER} bytes` })
      })
      .on('end', () => end(readAnswer(received)))
      .on('error', (error) => end({ failed: troubleOf(error) }))
      .on('close', () => end({ failed: 'the connection was closed' }))
      .end(line)
  })
}

const RIGHT = /^right(?: ([!-~]{1,512}))?\n$/

/** A line without its end may be cut off, so it is no answer. */
function readAnswer(text: string): HookAnswer {
  if (text === 'wrong\n') return { verdict: 'wrong' }
  const right = RIGHT.exec(text)
  if (right !== null) return { verdict: 'right', fingerprint: right[1] }
  return {
    failed:
      text === ''
        ? 'it closed the connection without an answer'
        : 'its answer is not one line with right, right FINGERPRINT or wrong',
  }
}

function troubleOf(error: Error): string {
  switch (codeOf(error)) {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return 'no program listens there'
    case 'EACCES':
    case 'EPERM':
      return 'permission to connect is denied'
    case 'EAGAIN':
      return 'too many connections wait there'
    case 'EPIPE':
    case 'ECONNRESET':
      return 'it closed the connection before it had read the question'
    default:
      return reasonOf(error)
  }
}

/**
 * Why passwords must not be sent to this path; undefined if they may. A user who can put a socket there receives them. So the socket and its
 * folder have to belong to root or to the user of this process, and no other user may write the folder or put another one in its place.
 */
async function placeFault(path: string, look?: Look): Promise<Fault | undefined> {
  let found: Stats
  try {
    found = await lstat(path)
  } catch (error) {
    if (isBug(error)) throw error
    if (codeOf(error) !== 'ENOENT') return explainPathError(error, path)
    return {
      reason: 'there is no such socket',
      remedy: 'start the program that listens there, or correct the path',
    }
  }
  if (!found.isSocket())
    return { reason: 'it is not a Unix socket', remedy: 'name the socket on which the program listens' }
  const [writer] = await otherWriters(dirname(path), { look })
  if (writer !== undefined) {
    const who = writer.owner === undefined ? 'so they' : 'who'
    return {
      reason: `${writer.reason}, ${who} could put a socket there and receive passwords`,
      remedy: `${writer.remedy}, or put the socket into a folder of root`,
    }
  }
  // The mode of a socket says who may connect. Of its path only the owner is left to judge.
  const owner = (await otherWriters(path, { look })).find((each) => each.owner !== undefined)?.owner
  if (owner === undefined) return undefined
  return {
    reason: `it belongs to user ${owner}, who may be another one than you think and receive passwords`,
    remedy: 'let systemd make the socket for the program, or chown it to root',
  }
}
