// What the official client says, reads and waits for, and Socket.IO by both of its ways;
// the rest of its methods are called by eliza_agents.mjs. Arguments: the server's address. Exit status 0: all was as it should be.
import assert from "node:assert/strict";
import { ElizaClient } from "@elizaos/api-client";
import { io } from "socket.io-client";
import { tell, watch } from "./eliza_watch.mjs";

const baseUrl = process.argv[2];
const client = watch(ElizaClient.create({ baseUrl, timeout: 20000 }));
const { messaging, sessions, jobs, agents, server, system } = client;
const zoe = "11111111-1111-1111-1111-111111111111";
const sam = "22222222-2222-2222-2222-222222222222";
const zero = "00000000-0000-0000-0000-000000000000";
let count = 0;
const step = async (name, run) => {
  try {
    const got = await run();
    count += 1;
    return got;
  } catch (error) {
    console.error(`${name}: ${error.code ?? ""} ${error.message}`);
    throw error;
  }
};
const until = async (what, look) => {
  for (let tries = 0; tries < 200; tries += 1) {
    const got = await look();
    if (got) return got;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never: ${what}`);
};

// --- agents and the server
const { agents: all } = await step("listAgents", () => agents.listAgents());
const anna = all.find((each) => each.name === "anna").id;
const ben = all.find((each) => each.name === "ben").id;
assert.equal((await step("getAgent", () => agents.getAgent(anna))).name, "anna");
assert.equal((await step("getWorlds", () => agents.getWorlds())).worlds.length, 2);
await step("getAgentPanels", () => agents.getAgentPanels(anna));
assert.ok((await step("ping", () => server.ping())).pong);
assert.ok((await step("hello", () => server.hello())).message);
assert.equal((await step("getStatus", () => server.getStatus())).agentCount, 2);
assert.equal((await step("checkHealth", () => server.checkHealth())).status, "OK");
assert.ok((await step("getDebugInfo", () => server.getDebugInfo())).count >= 1);
await assert.rejects(() => agents.getAgent(zoe), { code: "AGENT_NOT_FOUND" });

// --- servers
const current = await step("current", () => messaging.getCurrentMessageServer());
assert.equal(current.messageServerId, zero);
const made = await step("createMessageServer", () =>
  messaging.createMessageServer({ name: "guild", sourceType: "test" }));
assert.equal(made.name, "guild");
const listed = await step("listMessageServers", () => messaging.listMessageServers());
assert.equal(listed.messageServers.length, 2);
await step("addAgent", () => agents.addAgentToMessageServer(made.id, anna));
const on = await step("agentsFor", () => agents.getAgentsForMessageServer(made.id));
assert.deepEqual(on.agents, [anna]);
const of = await step("serversFor", () => agents.getMessageServersForAgent(anna));
assert.ok(of.messageServers.includes(made.id));
await step("removeAgent", () => agents.removeAgentFromMessageServer(made.id, anna));
const synced = await step("sync", () =>
  messaging.syncMessageServerChannels(made.id, {
    channels: [{ name: "a", type: "GROUP", sourceId: "1" }],
  }));
assert.equal(synced.channels.length, 1);
const inside = await step("channels", () => messaging.getMessageServerChannels(made.id));
assert.equal(inside.channels.length, 1);
await step("deleteMessageServer", () => messaging.deleteMessageServer(made.id));

// --- channels
const own = await step("createChannel", () =>
  messaging.createChannel({ name: "mine", type: "GROUP", metadata: { a: 1 } }));
assert.equal(own.metadata.a, 1);
const group = await step("createGroupChannel", () =>
  messaging.createGroupChannel({ name: "room", participantIds: [zoe, anna] }));
assert.equal(group.type, "GROUP");
const dm = await step("dm", () =>
  messaging.getOrCreateDmChannel({ participantIds: [zoe, anna] }));
assert.equal(dm.type, "DM");
await step("addUser", () => messaging.addUserToChannel(group.id, sam));
await step("addUsers", () => messaging.addUsersToChannel(group.id, [sam]));
await step("removeUser", () => messaging.removeUserFromChannel(group.id, sam));
await step("addAgentTo", () => messaging.addAgentToChannel(group.id, ben));
await step("removeAgentFrom", () => messaging.removeAgentFromChannel(group.id, ben));
const left = await step("participants", () =>
  messaging.getChannelParticipants(group.id));
assert.deepEqual(left, [zoe, anna]);
const shown = await step("updateChannel", () =>
  messaging.updateChannel(group.id, { name: "new" }));
assert.equal(shown.name, "new");
assert.equal((await messaging.getChannelDetails(group.id)).name, "new");

// --- messages
const posted = await step("postMessage", () => messaging.postMessage(group.id, "hello"));
assert.equal(posted.userMessage.content, "hello");
const answered = await until("an answer in the channel", async () => {
  const { messages } = await messaging.getChannelMessages(group.id, { limit: 10 });
  return messages.find((each) => each.authorId === anna);
});
assert.ok(answered.content.length > 0);
const got = await step("getMessage", () => messaging.getMessage(answered.id));
assert.equal(got.id, answered.id);
const changed = await step("updateMessage", () =>
  messaging.updateMessage(posted.userMessage.id, "other words"));
assert.equal(changed.content, "other words");
const sought = await step("searchMessages", () =>
  messaging.searchMessages({ query: "OTHER" }));
assert.equal(sought.messages[0].id, changed.id);
const submitted = await step("submitMessage", () =>
  messaging.submitMessage({ agentId: anna, channelId: group.id, content: "said" }));
assert.equal(submitted.authorId, anna);
await step("completeMessage", () =>
  messaging.completeMessage({ messageId: submitted.id, status: "completed" }));
const taken = await step("ingestExternalMessages", () =>
  messaging.ingestExternalMessages({
    platform: "irc",
    channelId: own.id,
    messages: [{ id: "1", authorId: "u", content: "hi", timestamp: 1 }],
  }));
assert.equal(taken.messageIds.length, 1);
const file = new File(["hello"], "a.txt", { type: "text/plain" });
const upload = await step("uploadChannelMedia", () =>
  client.media.uploadChannelMedia(group.id, file));
assert.equal(upload.size, 5);
await step("uploadAgentMedia", () =>
  client.media.uploadAgentMedia(anna, { file, filename: "a.txt" }));
const title = await step("generateChannelTitle", () =>
  messaging.generateChannelTitle(own.id, anna));
assert.equal(title.title, null);
await step("deleteMessage", () => messaging.deleteMessage(group.id, submitted.id));
await step("clearChannelHistory", () => messaging.clearChannelHistory(own.id));
await step("deleteChannel", () => messaging.deleteChannel(own.id));

// --- sessions
await step("sessions health", () => sessions.checkHealth());
const session = await step("createSession", () =>
  sessions.createSession({ agentId: anna, userId: zoe }));
const spoken = await step("sendMessageSync", () =>
  sessions.sendMessageSync(session.sessionId, { content: "hello" }));
assert.ok(spoken.agentResponse.text.length > 0);
await step("sendMessage", () =>
  sessions.sendMessage(session.sessionId, { content: "again" }));
const page = await step("getMessages", () =>
  sessions.getMessages(session.sessionId, { limit: 2 }));
assert.ok(page.messages.length > 0);
assert.equal((await sessions.getSession(session.sessionId)).agentId, anna);
assert.equal((await step("listSessions", () => sessions.listSessions())).total, 1);
await step("deleteSession", () => sessions.deleteSession(session.sessionId));

// --- jobs
const words = await step("ask", () => jobs.ask(zoe, "hello", anna, { interval: 100 }));
assert.ok(words.length > 0);
const backed = await step("backoff", () =>
  jobs.createAndPollWithBackoff({ userId: zoe, content: "hello", agentId: anna },
    { initialInterval: 100 }));
assert.ok(backed.success);
assert.ok((await step("jobs list", () => jobs.list())).total >= 2);
assert.ok((await step("jobs health", () => jobs.health())).statusCounts.completed >= 2);

// --- Socket.IO, by both of its ways
for (const way of ["websocket", "polling"]) {
  const socket = io(baseUrl, { auth: { entityId: zoe }, transports: [way] });
  const heard = [];
  socket.onAny((event, payload) => heard.push([event, payload]));
  const next = (event, fits = () => true) => until(`${way} ${event}`, async () =>
    heard.find(([name, payload]) => name === event && fits(payload))?.[1]);
  await next("connection_established");
  socket.emit("message", { type: 1, payload: { channelId: dm.id, entityId: zoe } });
  await next("channel_joined");
  const messageId = crypto.randomUUID();
  socket.emit("message", {
    type: 2,
    payload: {
      channelId: dm.id, senderId: zoe, senderName: "Zoe", message: "hello",
      messageServerId: zero, messageId, source: "socketio_client",
    },
  });
  const ack = await next("messageAck");
  assert.equal(ack.clientMessageId, messageId);
  await next("messageBroadcast", (each) => each.clientMessageId === messageId);
  const answer = await next("messageBroadcast", (each) => each.senderId === anna);
  assert.equal(answer.channelId, dm.id);
  socket.disconnect();
  count += 1;
}
const refused = io(baseUrl, { auth: {}, reconnection: false });
const why = await new Promise((resolve) => refused.on("connect_error", resolve));
assert.match(why.message, /entityId/);
assert.ok(count > 50);
tell();
process.exit(0);
