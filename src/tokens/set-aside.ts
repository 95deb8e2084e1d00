import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { shellWord } from '../system/shell-word.ts'
import { DATABASE, isReadable, versionInHeader } from './journal-database.ts'

/** An operator gives a token file that was set aside this name, so that the next start takes its tokens back. */
export const BACK = `${DATABASE}.back`

/** A token file that an earlier version has set aside, and what takes its tokens back. */
export interface SetAside {
  readonly path: string
  /** A shell command. After it, Postern has to be restarted. */
  readonly remedy: string
}

/** The names that `setDatabaseAside` gives, also to one that was to be taken back, but not to its log. */
const NEWER = /^tokens\.db(?:\.back)*\.newer-[\d.TZ-]+$/

/**
 * The token file of a state folder that an earlier version has set aside as newer than itself, and that this version reads. Its tokens are
 * not valid by themselves: the operator may have revoked some while the earlier version ran. Of several files this is the first. Undefined
 * without one, and while `BACK` exists, which the command would overwrite.
 */
export function findSetAside(dir: string): SetAside | undefined {
  const back = join(dir, BACK)
  if (!existsSync(dir) || existsSync(back)) return undefined
  const names = readdirSync(dir).filter((name) => NEWER.test(name))
  const path = names
    .toSorted()
    .map((name) => join(dir, name))
    .find((each) => isReadable(versionInHeader(each) ?? 0))
  return path === undefined ? undefined : { path, remedy: moveBack(path, back) }
}

function moveBack(path: string, back: string): string {
  const sides = existsSync(`${path}-wal`) ? ['-wal', ''] : ['']
  return sides.map((side) => `mv ${shellWord(path + side)} ${shellWord(back + side)}`).join(' && ')
}

/** The version of the token file in a state folder; undefined if there is none. */
export function readTokenFileVersion(dir: string): number | undefined {
  const path = join(dir, DATABASE)
  return existsSync(path) ? versionInHeader(path) : undefined
}
