import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DATABASE, isReadable, versionInHeader } from './journal-database.ts'

/** An operator gives a token file that was set aside this name, so that the next start takes its tokens back. */
export const BACK = `${DATABASE}.back`

/** A token file that an earlier version has set aside, and what takes its tokens back. */
export interface SetAside {
  readonly path: string
  /** A shell command. After it, Postern has to be restarted. */
  readonly remedy: string
}

/**
 * The token files of a state folder that an earlier version has set aside as newer than itself, and that this version reads. They are not
 * valid by themselves: nobody knows which of their tokens were to be revoked while the earlier version ran.
 */
export function findSetAside(dir: string): readonly SetAside[] {
  if (!existsSync(dir)) return []
  const names = readdirSync(dir).filter((name) => name.startsWith(`${DATABASE}.newer-`))
  const paths = names.filter((name) => !name.endsWith('-wal')).map((name) => join(dir, name))
  return paths
    .filter((path) => isReadable(versionInHeader(path) ?? 0))
    .toSorted()
    .map((path) => ({ path, remedy: moveBack(path, join(dir, BACK)) }))
}

function moveBack(path: string, back: string): string {
  const log = existsSync(`${path}-wal`) ? [`mv ${path}-wal ${back}-wal`] : []
  return [...log, `mv ${path} ${back}`].join(' && ')
}

/** The version of the token file in a state folder; undefined if there is none. */
export function readTokenFileVersion(dir: string): number | undefined {
  const path = join(dir, DATABASE)
  return existsSync(path) ? versionInHeader(path) : undefined
}
