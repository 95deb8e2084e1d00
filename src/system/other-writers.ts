import { constants } from 'node:fs'
import { lstat, readFile, readlink } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { geteuid } from 'node:process'
import { type Fault, fromRoot } from './named-file.ts'
import { mayRestart, type PathFacts, type PermissionedProcess } from './permissions.ts'
import { isBug, isWithheld } from './setup-error.ts'
import { shellWord } from './text.ts'

/** Looks at the file system. Resolves to undefined for what does not exist or is hidden from this process. */
export interface Look {
  readonly facts: (path: string) => Promise<PathFacts | undefined>
  readonly text: (path: string) => Promise<string | undefined>
}

/** A look that asks another program for what Node's permission model withholds, as long as this process may start one. */
export function createLook({
  permission,
  lookOutside,
  readOutside,
}: Pick<PermissionedProcess, 'permission' | 'lookOutside' | 'readOutside'>): Look {
  async function find<Found>(inside: Promise<Found>, outside: () => Found | undefined) {
    try {
      return await inside
    } catch (error) {
      if (isBug(error)) throw error
      return isWithheld(error) && mayRestart({ permission }) ? outside() : undefined
    }
  }
  return {
    facts: (path) => find<PathFacts>(factsOf(path), () => lookOutside(path)),
    text: (path) => find(readFile(path, 'utf8'), () => readOutside(path)),
  }
}

const LOOK: Look = createLook({
  permission: undefined,
  lookOutside: () => undefined,
  readOutside: () => undefined,
})

async function factsOf(path: string): Promise<PathFacts> {
  const { uid, gid, mode } = await lstat(path)
  return { uid, gid, mode, link: isLink(mode) ? await readlink(path) : undefined }
}

const isLink = (mode: number): boolean => (mode & constants.S_IFMT) === constants.S_IFLNK

/** A part of a path that lets another user replace what the path names. The reason and the remedy are clauses. */
export interface OtherWriter extends Fault {
  readonly remedy: string
  /** The owner, if that is the other user. */
  readonly owner?: number
  /** It is what the path names: no folder above, and no link on the way. */
  readonly isLast: boolean
}

interface Judging {
  /** The user that is trusted like root; default: that of this process. */
  readonly user?: number | undefined
  /** Owners are not judged: those of another user namespace are not the ones that they seem to be. */
  readonly anyOwner?: boolean
  readonly look?: Look | undefined
}

/**
 * The parts of a path through which a user other than root and `user` can write what it names, or put something else in its place: all that
 * such a user owns or can write, from `/` on, also those of the targets of links. A sticky folder above is safe, because only the owner of
 * what is in it can replace it, and that owner is judged, too (but for `anyOwner`). A path that does not exist is judged as far as it does.
 *
 * Access lists are not read. One that lets another user write sets the bit of the group in the mode, so it is noticed unless that group is
 * private.
 */
export async function otherWriters(
  path: string,
  { user = geteuid?.(), anyOwner = false, look = LOOK }: Judging = {},
): Promise<readonly OtherWriter[]> {
  const trusted = user === undefined ? [0] : [0, user]

  async function judge({ path, isLast, ...facts }: Part): Promise<OtherWriter | undefined> {
    const { uid, mode } = facts
    const word = shellWord(path)
    if (!anyOwner && !trusted.includes(uid)) {
      const remedy = isLast ? `chown ${trusted.at(-1)} ${word}` : `move it out of ${word}`
      return { reason: `${path} belongs to user ${uid}`, remedy, owner: uid, isLast }
    }
    const isSticky = !isLast && (mode & 0o1000) !== 0
    if (isLink(mode) || isSticky || (mode & 0o022) === 0) return undefined
    if ((mode & 0o002) === 0 && (await isPrivate(facts, trusted, look))) return undefined
    return { reason: `other users can write ${path}`, remedy: `chmod go-w ${word}`, isLast }
  }

  const found = await Promise.all((await partsOf(path, look)).map(judge))
  return found.filter((each) => each !== undefined)
}

interface Part extends PathFacts {
  readonly path: string
  readonly isLast: boolean
}

/** As many links as the kernel follows. */
const MOST_LINKS = 40

/** The folders and links that the kernel passes on the way to a file, from `/` on, and the file. */
async function partsOf(path: string, look: Look): Promise<readonly Part[]> {
  const parts: Part[] = []
  let at = '/'
  let links = 0
  let [name, ...rest] = namesIn(fromRoot(path))
  while (name !== undefined && links <= MOST_LINKS) {
    const here = resolve(at, name)
    const facts = await look.facts(here)
    const { link } = facts ?? {}
    if (facts !== undefined)
      parts.push({ ...facts, path: here, isLast: rest.length === 0 && link === undefined })
    if (link === undefined) {
      at = here
      ;[name, ...rest] = rest
    } else {
      links += 1
      ;[name, ...rest] = [...namesIn(link), ...rest]
    }
  }
  return parts
}

/** The names that are looked up one after the other; `/` for the root. */
function namesIn(path: string): readonly string[] {
  return [...(isAbsolute(path) ? ['/'] : []), ...path.split('/').filter((name) => name !== '')]
}

/**
 * Whether the group of a file is private: its only member is the owner of the file or a trusted user, and it has the name of that member.
 * Debian makes such a group for each user, and sets the umask 002, so the group can write all files of the user.
 */
async function isPrivate({ uid, gid }: PathFacts, trusted: readonly number[], look: Look): Promise<boolean> {
  const [users, groups] = [await entriesOf('/etc/passwd', look), await entriesOf('/etc/group', look)]
  const [member, ...more] = users.filter(([, , , group]) => group === `${gid}`)
  const [group, , , others] = groups.find(([, , id]) => id === `${gid}`) ?? []
  const [name, , id] = member ?? []
  const isTheirs = [uid, ...trusted].some((each) => id === `${each}`)
  return isTheirs && more.length === 0 && group === name && (others === '' || others === name)
}

/** The lines of a file such as `/etc/passwd`, as their fields. */
async function entriesOf(file: string, look: Look): Promise<readonly (readonly string[])[]> {
  const text = (await look.text(file)) ?? ''
  return text.split('\n').map((line) => line.split(':'))
}
