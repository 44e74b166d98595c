// What the official client knows beside messages: agents, memories, rooms, worlds,
// runs, logs, voices, settings. Arguments: the server's address. Exit status 0: all was
// as it should be. Three methods cannot do what they are for, and say so:
//   agents.deleteAgentLog        409 LOG_IS_HISTORY: entries follow from messages, and
//                                are forgotten with them;
//   system.updateLocalEnvironment 403 READ_ONLY_SETTINGS: settings are a file;
//   system.deleteLog             refused by the client itself, without asking.
import assert from "node:assert/strict";
import { ElizaClient } from "@elizaos/api-client";
import { io } from "socket.io-client";
import { tell, watch } from "./eliza_watch.mjs";

const baseUrl = process.argv[2];
const zoe = "11111111-1111-1111-1111-111111111111";
const zero = "00000000-0000-0000-0000-000000000000";
const headers = { "X-Entity-Id": zoe };
const client = watch(ElizaClient.create({ baseUrl, timeout: 20000, headers }));
const { agents, audio, memory, messaging, runs, server, sessions, system } = client;
const isUuid = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
const until = async (what, look) => {
  for (let tries = 0; tries < 200; tries += 1) {
    const got = await look();
    if (got) return got;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never: ${what}`);
};
const { agents: here } = await agents.listAgents();
const anna = here.find((each) => each.name === "anna").id;
const ben = here.find((each) => each.name === "ben").id;

// --- agents: made of a character, changed, stopped, started, deleted
const characterJson = {
  name: "Carl", bio: ["counts things"], system: "You count.", plugins: ["x"],
};
const carl = await agents.createAgent({ characterJson });
assert.equal(carl.name, "Carl");
assert.deepEqual(carl.leftOut, ["plugins"]);
assert.equal((await agents.getAgent(carl.id)).status, "active");
const changed = await agents.updateAgent(carl.id, { bio: "counts slowly" });
assert.equal(changed.bio, "counts slowly");
assert.equal((await agents.stopAgent(carl.id)).status, "inactive");
assert.equal((await agents.getAgent(carl.id)).status, "inactive");
assert.equal((await agents.startAgent(carl.id)).status, "active");
const talk = await sessions.createSession({ agentId: carl.id, userId: zoe });
const heard = await sessions.sendMessageSync(talk.sessionId, { content: "hello" });
assert.ok(heard.agentResponse.text.length > 0);
assert.equal((await agents.deleteAgent(carl.id)).success, true);
await assert.rejects(() => agents.getAgent(carl.id), { code: "AGENT_NOT_FOUND" });
await assert.rejects(() => agents.deleteAgent(ben), { code: "AGENT_OF_SETTINGS" });
await assert.rejects(() => agents.updateAgent(ben, { bio: "x" }), {
  code: "UPDATE_ERROR",
});
assert.deepEqual(await agents.getAgentPanels(anna), { panels: [] });

// --- worlds
const { worlds } = await agents.getWorlds();
const world = worlds.find((each) => each.agentId === anna);
assert.equal(world.messageServerId, zero);
assert.equal((await agents.addAgentToWorld(ben, world.id)).success, true);
const settled = await agents.updateAgentWorldSettings(anna, world.id, { quiet: true });
assert.deepEqual(settled, { ...settled, worldId: world.id, settings: { quiet: true } });
const grown = await memory.createWorldFromMessageServer(zero, {
  messageServerId: zero, name: "all", description: "of us",
});
assert.ok(isUuid(grown.worldId));

// --- rooms and what is remembered there
const room = await memory.createRoom(anna, { name: "ours", type: "DM" });
assert.ok((await memory.listAgentRooms(anna)).rooms.some((x) => x.id === room.id));
const shown = await memory.getRoom(anna, room.id);
assert.equal(shown.worldName, "Default Server");
const say = async (channelId, agentId, content) => {
  await messaging.postMessage(channelId, content);
  return until(`an answer to ${content}`, async () => {
    const { messages } = await messaging.getChannelMessages(channelId);
    return messages[0].authorId === agentId ? messages[0] : null;
  });
};
await say(room.channelId, anna, "remember that I like green tea");
const facts = await until("a fact", async () => {
  const found = await memory.getAgentMemories(anna, { type: "facts" });
  return found.memories.length ? found.memories : null;
});
assert.match(facts[0].content.text, /green tea/);
const reworded = await memory.updateMemory(anna, facts[0].id, {
  content: { text: "likes black tea" },
});
assert.equal(reworded.content.text, "likes black tea");
const again = await memory.updateAgentInternalMemory(anna, facts[0].id, {
  content: { text: "likes coffee" },
});
assert.equal(again.content.text, "likes coffee");
const said = await memory.getRoomMemories(anna, room.id, { limit: 10 });
assert.equal(said.memories.length, 2);
assert.equal(said.memories[0].agentId, anna);
assert.equal(said.memories[0].roomId, room.id);
const inner = await memory.getAgentInternalMemories(anna, room.id, true);
assert.deepEqual(inner.memories, said.memories);
await assert.rejects(() => memory.deleteMemory(anna, said.memories[0].id), {
  code: "MEMORY_IS_HISTORY",
});
await memory.deleteMemory(anna, facts[0].id);
await assert.rejects(() => memory.deleteAgentInternalMemory(anna, facts[0].id), {
  code: "MEMORY_NOT_FOUND",
});
await memory.deleteGroupMemory(room.channelId, said.memories[0].metadata.sourceId);
const cleared = await memory.clearRoomMemories(anna, room.id);
assert.equal(cleared.deleted, 1);

// --- runs, and the agent's log of them
const bens = await memory.createRoom(ben, { name: "sums", type: "DM" });
await say(bens.channelId, ben, "what is 12 * 7");
const run = await until("a run that has ended", async () => {
  const found = await runs.listRuns(ben, { roomId: bens.id, status: "completed" });
  assert.equal(typeof found.total, "number");
  return found.runs.find((each) => each.counts.actions > 0);
});
assert.equal(run.roomId, bens.id);
assert.ok(run.durationMs >= 0 && run.counts.modelCalls >= 2);
const detail = await runs.getRun(ben, run.runId, bens.id);
assert.equal(detail.summary.runId, run.runId);
const kinds = detail.events.map((each) => each.type);
assert.equal(kinds[0], "RUN_STARTED");
assert.equal(kinds.at(-1), "RUN_ENDED");
assert.ok(kinds.includes("ACTION_COMPLETED"));
assert.equal((await runs.getRun(ben, run.runId)).summary.runId, run.runId);
const entries = await agents.getAgentLogs(ben, { limit: 5 });
assert.ok(entries.length > 0 && isUuid(entries[0].id));
await assert.rejects(() => agents.deleteAgentLog(ben, entries[0].id), {
  code: "LOG_IS_HISTORY",
});
await memory.deleteAllAgentInternalMemories(anna, room.id);
assert.equal(typeof (await memory.clearAgentMemories(anna)).deleted, "number");
assert.equal(typeof (await memory.clearWorldMemories(zero)).deleted, "number");
await memory.clearGroupChat(room.channelId);
assert.equal((await memory.deleteWorld(zero)).success, true);
assert.deepEqual((await memory.listAgentRooms(anna)).rooms, []);

// --- voices, by stand-ins for the models
const wav = Buffer.from("RIFF0000WAVEfmt ");
assert.equal((await audio.transcribe(anna, { audio: wav })).text, "hello");
const base64 = wav.toString("base64");
assert.equal((await audio.transcribe(anna, { audio: base64 })).text, "hello");
const speech = await audio.generateSpeech(anna, { text: "good morning" });
assert.equal(atob(speech.audio), "spoken: good morning");
const answered = await audio.speechConversation(anna, { audio: wav, format: "wav" });
assert.ok(answered.text.length > 0);
assert.equal(atob(answered.audio), `spoken: ${answered.text}`);
assert.equal(answered.metadata.transcription, "hello");
const processed = await audio.processSpeech(anna, wav, { from: "test" });
assert.ok(processed.text.length > 0 && processed.audio.length > 0);
const dm = await messaging.getOrCreateDmChannel({ participantIds: [zoe, anna] });
const { messages } = await messaging.getChannelMessages(dm.id, { limit: 1 });
const aloud = await audio.synthesizeAudioMessage(anna, { messageId: messages[0].id });
assert.equal(atob(aloud.audio), `spoken: ${messages[0].content}`);
assert.equal(aloud.format, "mp3");

// --- logs and settings
const line = { level: "error", message: "seen by a client", source: "live" };
assert.equal((await server.submitLogs([line])).received, 1);
const global = await system.getGlobalLogs({ level: "error" });
assert.equal(global.logs.at(-1).text, "seen by a client");
assert.ok(global.levels.includes("info"));
const socket = io(baseUrl, { auth: { entityId: zoe } });
const lines = [];
socket.on("log_stream", ({ type, payload }) => lines.push([type, payload]));
const event = (name) => new Promise((resolve) => socket.once(name, resolve));
socket.emit("subscribe_logs");
assert.equal((await event("log_subscription_confirmed")).subscribed, true);
socket.emit("update_log_filters", { level: "warn" });
assert.equal((await event("log_filters_updated")).success, true);
await server.submitLogs([{ ...line, level: "info" }, { ...line, message: "loud" }]);
await until("a line of the log", async () => lines.length > 0);
assert.deepEqual([lines[0][0], lines[0][1].text], ["log_entry", "loud"]);
socket.disconnect();
assert.equal(typeof (await server.clearLogs()).cleared, "number");
assert.equal((await system.deleteGlobalLogs()).status, "success");
await assert.rejects(() => system.deleteLog("1"), /not supported/);
const environment = await system.getEnvironment();
assert.equal(environment["connectors.web.kind"], "web");
assert.equal(environment["models.scripted.script"].includes("offline"), true);
assert.equal(environment["media.speaker.api_key"], "***");
assert.ok(!JSON.stringify(environment).includes("the-key-of-the-voice"));
await assert.rejects(() => system.updateLocalEnvironment({ A: "b" }), {
  code: "READ_ONLY_SETTINGS",
});

// --- the end
assert.match((await server.stopServer()).message, /stopping/);
tell();
process.exit(0);
