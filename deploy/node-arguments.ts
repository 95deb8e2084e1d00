/** The folders to use in place of those that the unit and the image name. */
export interface Places {
  readonly program: string
  readonly configuration: string
  readonly state: string
}

/**
 * The arguments of Node in the `ExecStart` of a unit or a drop-in, the program as the last one. Throws if `ExecStart` starts
 * another program.
 */
export function unitArguments(unit: string, places?: Places): string[] {
  const [, line] =
    /^ExecStart=\/usr\/bin\/env node (.*\/postern\.mjs) serve --config \S+$/m.exec(
      unit.replaceAll('\\\n', ' '),
    ) ?? []
  if (line === undefined) throw new Error('ExecStart does not start postern.mjs with Node')
  return relocated(line.split(/\s+/), places)
}

/** The environment variables that a unit or a drop-in sets. */
export function unitEnvironment(unit: string): Record<string, string> {
  return Object.fromEntries(
    [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
}

/** The arguments of Node in the `ENTRYPOINT` of the image. */
export function imageArguments(dockerfile: string, places?: Places): string[] {
  const [, list] = /^ENTRYPOINT (\["node", .*\])$/m.exec(dockerfile.replaceAll('\\\n', ' ')) ?? []
  if (list === undefined) throw new Error('ENTRYPOINT does not start Node')
  const [, ...args] = JSON.parse(list) as string[]
  return relocated(args, places)
}

function relocated(args: readonly string[], places: Places | undefined): string[] {
  if (places === undefined) return [...args]
  return args.map((arg) =>
    arg
      .replace('/opt/postern', places.program)
      .replace('/etc/postern', places.configuration)
      .replace('/var/lib/postern', places.state),
  )
}
