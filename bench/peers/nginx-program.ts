import { outputOf } from '../child.ts'

/** Where nginx is looked for; Debian keeps it out of an ordinary user's path. */
const PLACES = ['nginx', '/usr/sbin/nginx', '/usr/local/sbin/nginx']

/** What `nginx -v` names, or undefined where none is installed. */
export async function nginxVersion(): Promise<string | undefined> {
  return (await find())?.version
}

export async function nginxProgram(): Promise<string> {
  const found = await find()
  if (found === undefined) throw new Error('nginx is not installed')
  return found.program
}

async function find(): Promise<{ program: string; version: string } | undefined> {
  for (const program of PLACES) {
    const text = await outputOf(program, ['-v']).catch(() => '')
    const version = /nginx\/(\S+)/.exec(text)?.[1]
    if (version !== undefined) return { program, version }
  }
  return undefined
}
