import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { controlSocketPath } from '../../admin/control-socket.ts'
import type { Config } from '../../config/schema.ts'
import { findSelfSigned, isSelfSigned } from '../../listen/tls-material.ts'
import { socketLengthProblem } from '../../system/listen-address.ts'
import { explainPathError, presentPart } from '../../system/named-file.ts'
import { isBug } from '../../system/setup-error.ts'
import { check } from './part.ts'

export const STATE_FOLDER = check({
  subjects: ({ config }) => [config],
  about: () => ({
    name: 'state_dir',
    key: 'state_dir',
    meaning: 'a restart loses all tokens, and postern status and revoke do not work',
    remedy: 'make the folder writable for the user that runs Postern, or set state_dir to one that is',
  }),
  look: lookAtFolder,
  rows: {
    'closed to a new certificate': ({ closed, isNeeded }) =>
      closed !== undefined &&
      isNeeded && {
        failed: closed.reason,
        meaning: 'serve does not start: it cannot store the self-signed certificate',
        remedy: closed.remedy,
        exitCode: 2,
      },
    closed: ({ closed }) => closed !== undefined && { failed: closed.reason, remedy: closed.remedy },
    'too long': ({ socket }) => {
      const tooLong = socketLengthProblem(socket)
      if (tooLong === undefined) return undefined
      return {
        failed: `status, explain, issue, revoke and retry will not work: ${socket} ${tooLong}`,
        meaning: 'the kernel takes no longer path for a Unix socket',
        remedy: 'set state_dir to a shorter path',
      }
    },
    writable: ({ folder, present }) => present === folder && `${folder} is writable`,
    missing: ({ folder, present }) =>
      present === dirname(folder) && `${folder} is created at the first start`,
    'without its parent': ({ folder }) => ({
      warning: `${dirname(folder)} does not exist`,
      meaning: 'the single executable is permitted to create the last folder of a path alone',
      remedy: `mkdir -p ${dirname(folder)}`,
    }),
  },
})

/**
 * `closed`: why no file can be created in the folder. `isNeeded`: a start has to write a self-signed pair there. Without the pair it fails;
 * without its token file the sidecar keeps tokens in memory.
 */
async function lookAtFolder({ listen, stateDir }: Config) {
  const folder = resolve(stateDir)
  const { path: present, isFolder } = presentPart(folder)
  const closed = await tryFolder(folder, present, isFolder).catch((error: unknown) => {
    if (isBug(error)) throw error
    return explainPathError(error, stateDir, 'write')
  })
  const isNeeded = closed !== undefined && isSelfSigned(listen.tls) && (await needsNewPair(stateDir))
  return { folder, present, closed, isNeeded, socket: controlSocketPath(stateDir) }
}

/** File systems of the kernel (proc, sysfs, cgroup2). No folder can be created in them, although `access` allows root to write. */
const KERNELS: ReadonlySet<number> = new Set([0x9fa0, 0x62656572, 0x63677270])

/**
 * Tries whether files can be created in a folder, without creating any. A start creates a missing folder. Rejects with the error that a
 * start would get.
 */
async function tryFolder(folder: string, present: string, isFolder: boolean): Promise<undefined> {
  if (!isFolder) throw systemError(present === folder ? 'EEXIST' : 'ENOTDIR')
  await access(present, constants.W_OK | constants.X_OK)
  if (KERNELS.has((await statfs(present)).type)) throw systemError('ENOENT')
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code })
}

/** Whether a start has to write a self-signed pair, because it is missing, broken or unreadable. */
async function needsNewPair(stateDir: string): Promise<boolean> {
  const found = await findSelfSigned(stateDir).catch((error: unknown) => {
    if (isBug(error)) throw error
    return 'missing' as const
  })
  return found === 'missing' || 'broken' in found
}
